// Histogram: how often values were how large, in buckets with fixed upper bounds, as Prometheus counts them.
//
// Adding costs one search among its few bounds, whatever was added before. It does not know units or names.
// Thread rule: a value; who shares one locks it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"

namespace ebb {

class Histogram {
 public:
  static constexpr std::size_t kMostBounds = 16;

  // Ascending; they must outlive it. A value that is as large as a bound lies below it.
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds) {
    EBB_CHECK(bounds.size() <= kMostBounds && std::ranges::is_sorted(bounds), "{} bounds", bounds.size());
  }

  void add(double value) {
    const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
    ++counts_[static_cast<std::size_t>(bucket)];
    ++n_;
    sum_ += value;
  }

  [[nodiscard]] std::span<const double> bounds() const { return bounds_; }
  // Values that lie in the bucket below a bound; behind the last bound, those above it.
  [[nodiscard]] std::int64_t n_in(std::size_t bucket) const { return counts_[bucket]; }
  [[nodiscard]] std::int64_t n() const { return n_; }
  [[nodiscard]] double sum() const { return sum_; }

 private:
  std::span<const double> bounds_;
  std::array<std::int64_t, kMostBounds + 1> counts_{};
  std::int64_t n_ = 0;
  double sum_ = 0.0;
};

}  // namespace ebb
