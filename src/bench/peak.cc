#include "bench/peak.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/page_memory.h"
#include "base/stream_copy.h"
#include "bench/machine.h"
#include "bench/read_stream.h"

namespace ebb {
namespace {

// What a thread takes at a time. Smaller: taking costs more. Larger: the last ones are waited for.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
// Kept in step with read_stream's widest pattern.
constexpr std::size_t kShareStep = 8 * kReadStep;
// Copies write, which takes several times as long as reading: they get by with so much of the buffer.
constexpr std::size_t kMostCopyBytes = std::size_t{256} << 20;
constexpr std::size_t kFreePart = 4;

// Ways that are tried again once all were, how often, and how many are run from then on.
constexpr std::size_t kTriedAgain = 8;
constexpr int kTriesAgain = 2;
constexpr std::size_t kKeptWays = 3;

// Some milliseconds, in pieces that are short beside what a machine's scheduler takes away at a time.
constexpr std::int64_t kLoopsPerPiece = 20'000;
constexpr std::size_t kMultiplyPieces = 16;  // of each thread
constexpr int kMultiplyTakes = 3;

// Milliseconds that n_threads take to do all pieces; whoever is free does the next. Starting the threads is not measured.
double time_pieces(std::int32_t n_threads, std::size_t n_pieces, const std::function<void(std::size_t)>& work) {
  Stopwatch watch;
  double ms = 0.0;
  std::atomic<std::size_t> next{0};
  std::barrier start(n_threads, [&watch]() noexcept { watch.restart(); });
  std::barrier finish(n_threads, [&]() noexcept { ms = watch.elapsed_ms(); });
  const auto run = [&] {
    start.arrive_and_wait();
    for (std::size_t piece = next.fetch_add(1); piece < n_pieces; piece = next.fetch_add(1)) work(piece);
    finish.arrive_and_wait();
  };
  std::vector<std::jthread> threads;
  for (std::int32_t i = 1; i < n_threads; ++i) threads.emplace_back(run);
  run();
  return ms;
}

double gb_per_s(std::size_t n_bytes, double ms) { return static_cast<double>(n_bytes) / ms / 1e6; }

// All, most first: fewer read faster where they get into each other's way.
std::vector<std::int32_t> thread_counts(std::int32_t n_threads) {
  std::vector<std::int32_t> counts = {n_threads, n_threads - 1, n_threads * 3 / 4, n_threads / 2, n_threads / 4, 1};
  std::erase_if(counts, [](std::int32_t n) { return n < 1; });
  std::ranges::sort(counts, std::greater());
  const auto repeated = std::ranges::unique(counts);
  counts.erase(repeated.begin(), repeated.end());
  return counts;
}

std::vector<ReadWay> all_ways(std::int32_t n_threads) {
  std::vector<ReadWay> ways;
  for (const bool large : {true, false}) {
    for (const std::int32_t n : thread_counts(n_threads)) {
      for (const std::int32_t n_streams : {1, 2, 4, 8}) {
        for (const Prefetch prefetch : {Prefetch::kNone, Prefetch::kKept, Prefetch::kPassing}) {
          for (const bool in_pieces : {true, false}) {
            ways.push_back({.pattern = {.n_streams = n_streams, .prefetch = prefetch},
                            .large_pages = large,
                            .in_pieces = in_pieces,
                            .n_threads = n});
          }
        }
      }
    }
  }
  return ways;
}

struct Tried {
  ReadWay way;
  std::vector<double> gb_s;
  [[nodiscard]] double score() const { return median(gb_s); }
};

void sort_best_first(std::vector<Tried>& tried) { std::ranges::stable_sort(tried, std::greater(), &Tried::score); }

struct CopyWay {
  bool past_cache = false;
  std::int32_t n_threads = 1;
};

}  // namespace

std::string ReadWay::text() const {
  return fmt::format("{} {}, {}, {} pages, {}", n_threads, n_threads == 1 ? "thread" : "threads", pattern.text(),
                     large_pages ? "large" : "small", in_pieces ? "in pieces" : "in shares");
}

class PeakProbe::State {
 public:
  State(std::int32_t n_threads, PeakSizes sizes)
      : n_threads_(n_threads), sizes_(sizes), large_(sizes.most), small_(sizes.most) {
    // Advice, as that for large pages is.
    if (small_.is_there()) madvise(small_.data(), sizes.most, MADV_NOHUGEPAGE);
  }

  [[nodiscard]] bool is_there() const { return large_.is_there() && small_.is_there(); }

  void choose(std::size_t n_pass_bytes) {
    const std::size_t n_free = read_machine().available_bytes / kFreePart;
    const std::size_t most = std::min(sizes_.most, std::max(n_free, sizes_.least));
    n_bytes_ = std::clamp(n_pass_bytes, sizes_.least, most) / kPieceBytes * kPieceBytes;
    largest_ = std::max(largest_, n_bytes_);
    // Untouched pages are all one page of zeros.
    for (const PageMemory* memory : {&large_, &small_}) {
      time_pieces(n_threads_, n_bytes_ / kPieceBytes,
                  [&](std::size_t piece) { std::memset(memory->data() + piece * kPieceBytes, 1, kPieceBytes); });
    }
    choose_reading();
    choose_copying();
  }

  PeakMoment measure(std::size_t n_pass_bytes) {
    const std::size_t n_bytes = std::clamp(n_pass_bytes, sizes_.least, n_bytes_) / kPieceBytes * kPieceBytes;
    PeakMoment moment;
    // The best one last: those before it leave the caches as a pass before a pass does.
    for (std::size_t i = ways_.size(); i-- > 0;) moment.read_gb_s = std::max(moment.read_gb_s, read(ways_[i], n_bytes));
    moment.copy_gb_s = copy(copy_way_);
    for (std::size_t type = 0; type < kMultiplyTypes; ++type) {
      moment.multiply_gop_s[type] = multiply(static_cast<MultiplyType>(type));
    }
    moments_.push_back(moment);
    return moment;
  }

  [[nodiscard]] std::size_t n_bytes() const { return n_bytes_; }

  [[nodiscard]] Peak peak() const {
    const auto spread = [this](auto value) {
      std::vector<double> values;
      for (const PeakMoment& moment : moments_) values.push_back(value(moment));
      return spread_of(values);
    };
    Peak peak{.read_gb_s = spread([](const PeakMoment& moment) { return moment.read_gb_s; }),
              .copy_gb_s = spread([](const PeakMoment& moment) { return moment.copy_gb_s; }),
              .n_threads = n_threads_,
              .buffer_bytes = largest_,
              .read_way = ways_.front().text()};
    for (std::size_t type = 0; type < kMultiplyTypes; ++type) {
      peak.multiply_gop_s[type] = spread([type](const PeakMoment& moment) { return moment.multiply_gop_s[type]; });
    }
    return peak;
  }

 private:
  void choose_reading() {
    std::vector<Tried> tried;
    for (const ReadWay& way : all_ways(n_threads_)) tried.push_back({.way = way, .gb_s = {read(way, n_bytes_)}});
    sort_best_first(tried);
    tried.resize(std::min(tried.size(), kTriedAgain));
    // In turn, so that a moment in which the machine was quiet favours none.
    for (int take = 0; take < kTriesAgain; ++take) {
      for (Tried& one : tried) one.gb_s.push_back(read(one.way, n_bytes_));
    }
    sort_best_first(tried);
    // Of one kind of pages, so that the other's memory is free while models compute.
    const bool large = tried.front().way.large_pages;
    std::erase_if(tried, [large](const Tried& one) { return one.way.large_pages != large; });
    tried.resize(std::min(tried.size(), kKeptWays));
    const PageMemory& other = large ? small_ : large_;
    madvise(other.data(), sizes_.most, MADV_DONTNEED);
    ways_.clear();
    for (const Tried& one : tried) ways_.push_back(one.way);
  }

  void choose_copying() {
    double most = 0.0;
    for (const bool past_cache : {false, true}) {
      for (const std::int32_t n_threads : thread_counts(n_threads_)) {
        const CopyWay way{.past_cache = past_cache, .n_threads = n_threads};
        const double gb_s = std::max(copy(way), copy(way));
        if (gb_s > most) copy_way_ = way;
        most = std::max(most, gb_s);
      }
    }
  }

  double read(const ReadWay& way, std::size_t n_bytes) const {
    const std::byte* const bytes = (way.large_pages ? large_ : small_).data();
    const auto n_threads = static_cast<std::size_t>(way.n_threads);
    const std::size_t n_piece_bytes = way.in_pieces ? kPieceBytes : n_bytes / n_threads / kShareStep * kShareStep;
    const std::size_t n_pieces = way.in_pieces ? n_bytes / kPieceBytes : n_threads;
    std::atomic<std::uint64_t> sum{0};  // a result that is used is a loop that is run
    const double ms = time_pieces(way.n_threads, n_pieces, [&](std::size_t piece) {
      sum.fetch_add(read_stream(bytes + piece * n_piece_bytes, n_piece_bytes, way.pattern), std::memory_order_relaxed);
    });
    EBB_CHECK(sum.load() != 0, "a buffer of ones adds up to nothing");
    return gb_per_s(n_pieces * n_piece_bytes, ms);
  }

  // From the first half of the buffer into the second.
  double copy(const CopyWay& way) const {
    std::byte* const bytes = (ways_.front().large_pages ? large_ : small_).data();
    const std::size_t n_pieces = std::min(n_bytes_, kMostCopyBytes) / 2 / kPieceBytes;
    const std::size_t n_copied = n_pieces * kPieceBytes;
    const double ms = time_pieces(way.n_threads, n_pieces, [&](std::size_t piece) {
      std::byte* const from = bytes + piece * kPieceBytes;
      if (way.past_cache) {
        copy_past_cache(from + n_copied, {from, kPieceBytes});
      } else {
        std::memcpy(from + n_copied, from, kPieceBytes);
      }
    });
    return gb_per_s(n_copied, ms);
  }

  [[nodiscard]] double multiply(MultiplyType type) const {
    if (multiply_instruction(type).empty()) return 0.0;
    const std::size_t n_pieces = kMultiplyPieces * static_cast<std::size_t>(n_threads_);
    double most = 0.0;
    for (int take = 0; take < kMultiplyTakes; ++take) {
      std::atomic<double> n_operations{0.0};
      const double ms = time_pieces(n_threads_, n_pieces,
                                    [&](std::size_t) { n_operations.fetch_add(run_multiplies(type, kLoopsPerPiece)); });
      most = std::max(most, n_operations.load() / ms / 1e6);
    }
    return most;
  }

  std::int32_t n_threads_;
  PeakSizes sizes_;
  // As large as may be asked for; pages are there once they are written.
  PageMemory large_;
  PageMemory small_;
  std::size_t n_bytes_ = 0;
  std::size_t largest_ = 0;
  std::vector<ReadWay> ways_;  // best first
  CopyWay copy_way_;
  std::vector<PeakMoment> moments_;
};

PeakProbe::PeakProbe(std::unique_ptr<State> state) : state_(std::move(state)) {}
PeakProbe::~PeakProbe() = default;
PeakProbe::PeakProbe(PeakProbe&&) noexcept = default;
PeakProbe& PeakProbe::operator=(PeakProbe&&) noexcept = default;

Result<PeakProbe> PeakProbe::open(std::int32_t n_threads, PeakSizes sizes) {
  if (n_threads < 1 || sizes.least < 2 * kPieceBytes || sizes.most < sizes.least) {
    return error(Code::kInvalidArgument, "a peak of {} threads over {} to {} bytes: at least one, and 2 MiB", n_threads,
                 sizes.least, sizes.most);
  }
  auto state = std::make_unique<State>(n_threads, sizes);
  if (!state->is_there()) {
    return error(Code::kOutOfBudget, "measuring the peak of the memory takes {} MiB, which the system refuses",
                 2 * sizes.most >> 20);
  }
  return PeakProbe(std::move(state));
}

void PeakProbe::choose(std::size_t n_pass_bytes) { state_->choose(n_pass_bytes); }

PeakMoment PeakProbe::measure(std::size_t n_pass_bytes) {
  EBB_CHECK(state_->n_bytes() > 0, "a peak is measured before ways to measure it were tried");
  return state_->measure(n_pass_bytes);
}

PeakMoment PeakProbe::measure() { return measure(state_->n_bytes()); }

Peak PeakProbe::peak() const { return state_->peak(); }

std::optional<PeakShare> peak_share(std::span<const double> done, std::span<const double> limits) {
  if (std::ranges::any_of(limits, [](double limit) { return limit <= 0.0; })) return std::nullopt;
  const std::vector<double> shares = paired_ratios(done, limits);
  return PeakShare{
      .share = spread_of(shares),
      .n_beaten = static_cast<std::int32_t>(std::ranges::count_if(shares, [](double s) { return s > 1.0; }))};
}

void PeakBeaten::add(const PeakShare& share) {
  n_rounds += share.share.n;
  n_beaten += share.n_beaten;
  most = std::max(most, share.share.max);
}

}  // namespace ebb
