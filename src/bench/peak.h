// PeakProbe: what this machine gives at this moment, measured beside what is held against it.
//
// A machine that is shared drifts by a factor of several within an hour, so that a peak which is taken once says nothing of what was
// measured later. A probe takes some tens of milliseconds, as many as reading a few tokens' weights does; a bench runs it in each round,
// beside the passes of that round, and a share of the peak is of the same round. It reads as much as a pass does, over and over as passes
// do: what stays in the caches of one stays in those of the other. Each figure is the best of several ways (streams, prefetching,
// page sizes, who reads what, numbers of threads): all are tried by choose(), and the best few are run from then on.
// It knows no models. Thread rule: one thread at a time; it starts threads of its own, which end with each call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/multiply_rate.h"
#include "bench/read_stream.h"
#include "bench/statistics.h"

namespace ebb {

// How many bytes are read at once, whatever a pass reads. Fewer: they stay in the caches of the machine's last level. More: touching
// the pages takes longer than measuring, and memory that the models need.
struct PeakSizes {
  std::size_t least = std::size_t{256} << 20;
  std::size_t most = std::size_t{2} << 30;
};

// Of one moment. 1 GB = 1e9 bytes, 1 GOP = 1e9 operations, two for each multiply-add.
struct PeakMoment {
  double read_gb_s = 0.0;
  double copy_gb_s = 0.0;  // bytes copied, not bytes moved (a copy moves each twice or three times)
  std::array<double, kMultiplyTypes>
      multiply_gop_s{};  // by MultiplyType; 0 where the processor has no instruction known here
};

// Of a whole run: least and most say how far the machine drifted.
struct Peak {
  Spread read_gb_s;
  Spread copy_gb_s;
  std::array<Spread, kMultiplyTypes> multiply_gop_s{};
  std::int32_t n_threads = 0;
  std::size_t buffer_bytes = 0;  // the most that was read at once
  std::string read_way;          // the best one when they were tried last
};

// One way to read a buffer.
struct ReadWay {
  ReadPattern pattern;
  bool large_pages = true;  // as advised; the system may have none
  bool in_pieces = true;    // whoever is free takes the next; else each thread has its share
  std::int32_t n_threads = 1;

  // "2 threads, 4 streams each, prefetched, large pages, in pieces"
  [[nodiscard]] std::string text() const;
};

class PeakProbe {
 public:
  // kInvalidArgument for no thread; kOutOfBudget when the system refuses the memory.
  static Result<PeakProbe> open(std::int32_t n_threads, PeakSizes sizes = {});
  ~PeakProbe();
  PeakProbe(PeakProbe&&) noexcept;
  PeakProbe& operator=(PeakProbe&&) noexcept;

  // Tries all ways on a buffer of as many bytes as a pass reads, within PeakSizes and a quarter of the memory that is free, and keeps the
  // best. Takes as long as some hundred reads of it.
  void choose(std::size_t n_pass_bytes);
  // Of passes that read so much, which is at most what was chosen for. Kept, for peak().
  PeakMoment measure(std::size_t n_pass_bytes);
  // As many as it was chosen for.
  PeakMoment measure();
  // Of all that was measured so far; at least one.
  [[nodiscard]] Peak peak() const;

 private:
  class State;
  explicit PeakProbe(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// What a pass did as a share of what the probe of its round says can be done.
struct PeakShare {
  Spread share;
  std::int32_t n_beaten = 0;  // rounds in which the pass did more

  friend bool operator==(const PeakShare&, const PeakShare&) = default;
};
// done[i] over limits[i]; as many of one as of the other. Nothing where a limit is 0.
[[nodiscard]] std::optional<PeakShare> peak_share(std::span<const double> done, std::span<const double> limits);

// In how many rounds passes did more than the probe beside them.
struct PeakBeaten {
  std::int32_t n_rounds = 0;
  std::int32_t n_beaten = 0;
  double most = 0.0;  // the largest share of all

  void add(const PeakShare& share);
};

}  // namespace ebb
