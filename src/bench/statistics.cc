#include "bench/statistics.h"

#include <algorithm>

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

std::vector<double> paired_ratios(std::span<const double> a, std::span<const double> b) {
  EBB_CHECK(a.size() == b.size(), "{} values against {}", a.size(), b.size());
  std::vector<double> ratios(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EBB_CHECK(b[i] != 0.0, "pair {} of {} divides by 0", i, a.size());
    ratios[i] = a[i] / b[i];
  }
  return ratios;
}

}  // namespace ebb
