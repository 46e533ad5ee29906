#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/check.h"

namespace ebb {
namespace {

// Where 19 of 20 values of a statistic lie, of n that are drawn again and again from n; what is no number is left out, and not all
// of it may be. The same each time.
template <class Statistic>
ShareInterval bootstrap(std::size_t n, const Statistic& statistic) {
  constexpr std::size_t kRounds = 2000;
  std::mt19937_64 random(1);
  std::vector<std::size_t> drawn(n);
  std::vector<double> values;
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (std::size_t& i : drawn) i = random() % n;
    const double value = statistic(drawn);
    if (!std::isnan(value)) values.push_back(value);
  }
  EBB_CHECK(!values.empty(), "no draw of {} says anything", n);
  std::ranges::sort(values);
  return {.low = values[values.size() / 40], .high = values[values.size() - 1 - values.size() / 40]};
}

}  // namespace

double mean_of(std::span<const double> values) {
  EBB_CHECK(!values.empty(), "a mean of nothing");
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double median(std::span<const double> values) {
  EBB_CHECK(!values.empty(), "a median of nothing");
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0;
}

Spread spread_of(std::span<const double> values) {
  EBB_CHECK(!values.empty(), "a spread of nothing");
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  return {.median = median(values), .min = *min, .max = *max, .n = static_cast<std::int32_t>(values.size())};
}

MedianInterval median_interval(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const auto n = static_cast<double>(sorted.size());
  // How many coins of n may fall one way, so that fewer do not once in 40 times.
  double term = std::pow(0.5, n);
  double below = term;
  std::size_t at = 0;
  while (2 * (at + 1) < sorted.size()) {
    term *= (n - static_cast<double>(at)) / static_cast<double>(at + 1);
    if (below + term >= 0.025) break;
    below += term;
    ++at;
  }
  return {.median = median(values),
          .low = sorted[at],
          .high = sorted[sorted.size() - 1 - at],
          .n = static_cast<std::int32_t>(sorted.size())};
}

std::vector<double> paired_ratios(std::span<const double> a, std::span<const double> b) {
  EBB_CHECK(a.size() == b.size(), "{} values against {}", a.size(), b.size());
  std::vector<double> ratios(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EBB_CHECK(b[i] != 0.0, "pair {} of {} divides by 0", i, a.size());
    ratios[i] = a[i] / b[i];
  }
  return ratios;
}

PairedDifference paired_difference(std::span<const double> a, std::span<const double> b) {
  EBB_CHECK(a.size() == b.size() && !a.empty(), "{} values against {}", a.size(), b.size());
  std::vector<double> differences;
  for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(a[i] - b[i]);
  const ShareInterval range = bootstrap(a.size(), [&](std::span<const std::size_t> drawn) {
    double sum = 0.0;
    for (const std::size_t i : drawn) sum += differences[i];
    return sum / static_cast<double>(drawn.size());
  });
  return {.mean = mean_of(differences), .low = range.low, .high = range.high};
}

std::optional<PairedShare> paired_share(std::span<const double> a, std::span<const double> b) {
  EBB_CHECK(a.size() == b.size(), "{} values against {}", a.size(), b.size());
  if (b.empty() || mean_of(b) == 0.0) return std::nullopt;
  const ShareInterval range = bootstrap(a.size(), [&](std::span<const std::size_t> drawn) {
    double sum_a = 0.0;
    double sum_b = 0.0;
    for (const std::size_t i : drawn) {
      sum_a += a[i];
      sum_b += b[i];
    }
    return sum_b == 0.0 ? std::numeric_limits<double>::quiet_NaN() : sum_a / sum_b;
  });
  return PairedShare{.share = mean_of(a) / mean_of(b), .low = range.low, .high = range.high};
}

double quantile(std::span<const double> values, double share) {
  EBB_CHECK(!values.empty() && share >= 0.0 && share <= 1.0, "the {} quantile of {} values", share, values.size());
  std::vector<double> sorted(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(rank == 0 ? 0 : rank - 1);
  std::ranges::nth_element(sorted, at);
  return *at;
}

QuantileRatio paired_quantile_ratio(std::span<const double> a, std::span<const double> b, double share) {
  EBB_CHECK(a.size() == b.size() && !a.empty(), "{} values against {}", a.size(), b.size());
  std::vector<double> drawn_a(a.size());
  std::vector<double> drawn_b(b.size());
  const ShareInterval range = bootstrap(a.size(), [&](std::span<const std::size_t> drawn) {
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      drawn_a[i] = a[drawn[i]];
      drawn_b[i] = b[drawn[i]];
    }
    return quantile(drawn_a, share) / quantile(drawn_b, share);
  });
  return {.ratio = quantile(a, share) / quantile(b, share), .low = range.low, .high = range.high};
}

ShareInterval score_interval(std::span<const double> scores) {
  EBB_CHECK(!scores.empty(), "an interval of nothing");
  if (std::ranges::all_of(scores, [](double score) { return score == 0.0 || score == 1.0; })) {
    return share_interval(std::ranges::count(scores, 1.0), std::ssize(scores));
  }
  return bootstrap(scores.size(), [&](std::span<const std::size_t> drawn) {
    double sum = 0.0;
    for (const std::size_t i : drawn) sum += scores[i];
    return sum / static_cast<double>(drawn.size());
  });
}

ShareInterval share_interval(std::int64_t n_hits, std::int64_t n) {
  EBB_CHECK(n > 0 && n_hits >= 0 && n_hits <= n, "{} hits of {}", n_hits, n);
  // 95 % of a normal distribution lie within so many deviations.
  constexpr double kZ = 1.959963985;
  const auto count = static_cast<double>(n);
  const double share = static_cast<double>(n_hits) / count;
  const double scale = 1.0 + kZ * kZ / count;
  const double middle = (share + kZ * kZ / (2.0 * count)) / scale;
  const double reach = kZ * std::sqrt(share * (1.0 - share) / count + kZ * kZ / (4.0 * count * count)) / scale;
  // Where all or none hit, the share is a bound itself; rounding would leave it a bit outside.
  return {.low = n_hits == 0 ? 0.0 : middle - reach, .high = n_hits == n ? 1.0 : middle + reach};
}

}  // namespace ebb
