// The machine that a benchmark runs on: what it is, and how fast its memory is when nothing else limits it.
//
// Decoding reads all weights and all hot K/V once per token, so the measured read bandwidth is the bound that its speed
// is held against. It does not know models. Thread rule: one measurement at a time; it starts its own threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "bench/statistics.h"

namespace ebb {

struct Machine {
  std::string cpu;          // "AMD EPYC"; "unknown CPU" where the system does not say
  std::int32_t n_cpus = 1;  // that this process may run on
  std::size_t last_cache_bytes = 0;
  std::size_t memory_bytes = 0;
  std::size_t available_bytes = 0;  // what can be taken now without swapping
  double load_1min = 0.0;           // processes that wanted to run in the last minute, this one included
};

[[nodiscard]] Machine read_machine();
// Of this process, now; 0 where the system does not say.
[[nodiscard]] std::size_t read_resident_bytes();

struct Bandwidth {
  Spread read_gb_s;  // 1 GB = 1e9 bytes
  Spread copy_gb_s;  // bytes copied, not bytes moved (a copy moves each twice or three times)
  std::int32_t n_threads = 0;
  std::size_t buffer_bytes = 0;
};

// How often, where nobody asks for more: enough for a median that one disturbance does not move.
inline constexpr std::int32_t kBandwidthRounds = 9;
// Streams through a buffer many times the last cache on n_threads threads, n_repeats times. kOutOfBudget when the
// buffer does not fit.
Result<Bandwidth> measure_bandwidth(std::int32_t n_threads, std::int32_t n_repeats);

// Empties the processor's caches of what was there: reads memory that nobody else wants, as much as the last one holds.
class CacheSweep {
 public:
  // kOutOfBudget when that memory is refused.
  static Result<CacheSweep> open();
  void sweep();

 private:
  explicit CacheSweep(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::vector<std::byte> bytes_;
};

}  // namespace ebb
