#include "policy/pooling.h"

#include <algorithm>
#include <numeric>

#include "base/to_size.h"

namespace ebb {
namespace {

// Of the first n values; the others stay as they are.
std::vector<double> pool_first(const std::vector<double>& values, std::size_t n, std::size_t reach, bool takes_max) {
  if (reach == 0) return values;
  std::vector<double> pooled = values;
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0.0;
    double most = 0.0;
    for (std::size_t j = i - std::min(i, reach); j < std::min(n, i + reach + 1); ++j) {
      sum += values[j];
      most = std::max(most, values[j]);
    }
    pooled[i] = takes_max ? most : sum / static_cast<double>(2 * reach + 1);
  }
  return pooled;
}

}  // namespace

std::size_t count_before_window(const Evidence& evidence, const ScopeEvidence& scope, std::int32_t window) {
  const auto is_before = [&](const ScopeRow& row) { return evidence.block(row).span.end <= evidence.end - window; };
  return static_cast<std::size_t>(std::ranges::find_if_not(scope.rows, is_before) - scope.rows.begin());
}

std::vector<double> pool_before_window(const Evidence& evidence, const ScopeEvidence& scope,
                                       const std::vector<double>& values, const Pooling& pooling) {
  return pool_first(values, count_before_window(evidence, scope, pooling.window),
                    to_size(pooling.kernel / 2 / evidence.grain), pooling.takes_max);
}

SliceValues list_slices(const Evidence& evidence, const ScopeEvidence& scope, const std::vector<double>& column) {
  SliceValues list;
  for (std::size_t i = 0; i < scope.rows.size(); ++i) {
    const Span span = evidence.block(scope.rows[i]).span;
    list.begins.push_back(list.values.size());
    const auto of_row = scope.slices.of(column, i).first(scope.slices.n_begun(span));
    list.values.insert(list.values.end(), of_row.begin(), of_row.end());
    for (std::size_t j = 1; j <= of_row.size(); ++j) {
      list.ends.push_back(std::min(span.end, span.begin + static_cast<std::int32_t>(j) * scope.slices.n_tokens));
    }
  }
  list.begins.push_back(list.values.size());
  return list;
}

SliceValues pool_before_window(const Evidence& evidence, const ScopeEvidence& scope, SliceValues list,
                               const Pooling& pooling) {
  const Position window = evidence.end - pooling.window;
  const auto n = static_cast<std::size_t>(std::ranges::upper_bound(list.ends, window) - list.ends.begin());
  list.values = pool_first(list.values, n, to_size(pooling.kernel / 2 / scope.slices.n_tokens), pooling.takes_max);
  return list;
}

std::vector<double> lift_slices(const SliceValues& list, Lift lift) {
  std::vector<double> rows;
  for (std::size_t i = 0; i + 1 < list.begins.size(); ++i) {
    const std::span<const double> of_row = list.of(i);
    if (of_row.empty()) {
      rows.push_back(0.0);
    } else if (lift == Lift::kMost) {
      rows.push_back(std::ranges::max(of_row));
    } else {
      const double sum = std::accumulate(of_row.begin(), of_row.end(), 0.0);
      rows.push_back(sum / static_cast<double>(of_row.size()));
    }
  }
  return rows;
}

}  // namespace ebb
