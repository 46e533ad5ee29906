#include "base/keep_share.h"

#include <algorithm>
#include <numeric>

#include "base/to_size.h"

namespace ebb {

std::vector<std::int32_t> keep_share(std::span<const double> weights, double share) {
  const auto last = static_cast<std::int32_t>(weights.size()) - 1;
  const auto is_fixed = [&](std::int32_t i) { return i == 0 || i == last; };
  std::vector<std::int32_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
    if (is_fixed(a) != is_fixed(b)) return is_fixed(a);
    return weights[to_size(a)] > weights[to_size(b)];
  });
  const double wanted = share * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0.0;
  std::vector<std::int32_t> kept;
  for (const std::int32_t i : order) {
    if (!is_fixed(i) && sum >= wanted) break;
    kept.push_back(i);
    sum += weights[to_size(i)];
  }
  std::ranges::sort(kept);
  return kept;
}

}  // namespace ebb
