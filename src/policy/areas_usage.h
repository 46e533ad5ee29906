// UsageMeter: how full a pool of blocks was, as percentages of it: now, at most, and lately.
//
// Sampled once a pass when it is scheduled, before what it evicts leaves. Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace ebb {

class UsageMeter {
 public:
  // The mean is of at most this many of the last samples, so that it follows what runs now.
  static constexpr std::size_t kMostSamples = 1000;

  // n_used of n_blocks, of which there must be one at least.
  void sample(std::int64_t n_used, std::int64_t n_blocks);
  // Another generation begins.
  void restart() { *this = UsageMeter(); }

  // Percent; 0 before the first sample.
  [[nodiscard]] double last() const { return samples_.empty() ? 0.0 : samples_.back(); }
  [[nodiscard]] double max() const { return max_; }
  [[nodiscard]] double average() const;

 private:
  std::deque<double> samples_;
  double max_ = 0.0;
};

}  // namespace ebb
