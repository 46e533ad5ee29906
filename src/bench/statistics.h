// What a benchmark says about repeated measurements: of times medians and the spread around them, never means; of scores means.
//
// Two sides that were measured in turn are compared pair by pair: what disturbed both at the same moment then cancels.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ebb {

struct Spread {
  double median = 0.0;
  double min = 0.0;
  double max = 0.0;
  std::int32_t n = 0;

  friend bool operator==(const Spread&, const Spread&) = default;
};

// The value in the middle; with an even number of values, the mean of the two there. At least one value.
[[nodiscard]] double median(std::span<const double> values);
[[nodiscard]] Spread spread_of(std::span<const double> values);
// Where the median of what was sampled lies, 19 times of 20, whatever its distribution: between two of the values in order, by
// how often a fair coin falls. Of fewer than 6 values, which say less, the least and the greatest. At least one value.
struct MedianInterval {
  double median = 0.0;
  double low = 0.0;
  double high = 0.0;
  std::int32_t n = 0;
};
[[nodiscard]] MedianInterval median_interval(std::span<const double> values);
// a[i] / b[i]; as many of one as of the other, and nothing in b is 0.
[[nodiscard]] std::vector<double> paired_ratios(std::span<const double> a, std::span<const double> b);

// Where the true share lies, 19 times of 20, when n_hits of n were seen: Wilson's interval. n is at least 1.
struct ShareInterval {
  double low = 0.0;
  double high = 0.0;
};
[[nodiscard]] ShareInterval share_interval(std::int64_t n_hits, std::int64_t n);

// At least one value.
[[nodiscard]] double mean_of(std::span<const double> values);
// Where the true mean of scores of 0 to 1 lies, 19 times of 20: Wilson's interval where each is 0 or 1, else bootstrap over them,
// which is the same each time. At least one value.
[[nodiscard]] ShareInterval score_interval(std::span<const double> scores);

// By how much `a` is more than `b` in the mean of their pairs, and where that lies 19 times of 20: bootstrap over the pairs,
// which is the same each time. As many of one as of the other, one at least.
struct PairedDifference {
  double mean = 0.0;
  double low = 0.0;
  double high = 0.0;
};
[[nodiscard]] PairedDifference paired_difference(std::span<const double> a, std::span<const double> b);

// What share of the sum of `b` the sum of `a` is, and where that lies 19 times of 20: bootstrap over the pairs, those draws left
// out whose `b` sums to 0. Nothing where all of `b` does. As many of one as of the other.
struct PairedShare {
  double share = 0.0;
  double low = 0.0;
  double high = 0.0;
};
[[nodiscard]] std::optional<PairedShare> paired_share(std::span<const double> a, std::span<const double> b);

// The value that `share` (0 to 1) of all lie at or below: the one of that rank, not between two. At least one value.
[[nodiscard]] double quantile(std::span<const double> values, double share);
// How many times the quantile of `b` that of `a` is, and where that lies 19 times of 20: bootstrap over the pairs. As many of one as
// of the other, one at least; nothing in b is 0.
struct QuantileRatio {
  double ratio = 0.0;
  double low = 0.0;
  double high = 0.0;
};
[[nodiscard]] QuantileRatio paired_quantile_ratio(std::span<const double> a, std::span<const double> b, double share);

}  // namespace ebb
