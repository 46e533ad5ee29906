#include "policy/pooling.h"

#include <algorithm>

#include "base/to_size.h"

namespace ebb {

std::size_t count_before_window(const Evidence& evidence, const ScopeEvidence& scope, std::int32_t window) {
  const auto is_before = [&](const ScopeRow& row) { return evidence.block(row).span.end <= evidence.end - window; };
  return static_cast<std::size_t>(std::ranges::find_if_not(scope.rows, is_before) - scope.rows.begin());
}

std::vector<double> pool_before_window(const Evidence& evidence, const ScopeEvidence& scope,
                                       const std::vector<double>& values, const Pooling& pooling) {
  const std::size_t reach = to_size(pooling.kernel / 2 / evidence.grain);
  if (reach == 0) return values;
  const std::size_t n = count_before_window(evidence, scope, pooling.window);
  std::vector<double> pooled = values;
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0.0;
    double most = 0.0;
    for (std::size_t j = i - std::min(i, reach); j < std::min(n, i + reach + 1); ++j) {
      sum += values[j];
      most = std::max(most, values[j]);
    }
    pooled[i] = pooling.takes_max ? most : sum / static_cast<double>(2 * reach + 1);
  }
  return pooled;
}

}  // namespace ebb
