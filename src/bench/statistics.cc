#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/check.h"

namespace ebb {

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
  constexpr std::size_t kRounds = 2000;
  std::vector<double> differences;
  for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(a[i] - b[i]);
  const auto n = static_cast<double>(a.size());
  std::mt19937_64 random(1);
  std::vector<double> means;
  for (std::size_t round = 0; round < kRounds; ++round) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += differences[random() % a.size()];
    means.push_back(sum / n);
  }
  std::ranges::sort(means);
  double sum = 0.0;
  for (const double difference : differences) sum += difference;
  return {.mean = sum / n, .low = means[kRounds / 40], .high = means[kRounds - 1 - kRounds / 40]};
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
  return {.low = std::max(0.0, middle - reach), .high = std::min(1.0, middle + reach)};
}

}  // namespace ebb
