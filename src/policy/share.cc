#include "policy/share.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/check.h"

namespace ebb {
namespace {

// Fractions that differ by less are equal: what makes them differ is how sums round.
constexpr double kNoise = 1e-9;

// Real shares: those whose cap or floor binds have it, the others what is left by weight. Where both bind, those that change
// the sum more are settled first: what they free or take may release the others.
std::vector<double> fill(double total, std::span<const double> weights, std::span<const std::int32_t> caps,
                         std::span<const std::int32_t> floors) {
  std::vector<double> wanted(weights.size(), 0.0);
  std::vector<double> shares(weights.size(), 0.0);
  std::vector<std::size_t> open(weights.size());
  std::iota(open.begin(), open.end(), 0);
  while (!open.empty()) {
    double weight = 0.0;
    for (const std::size_t i : open) weight += weights[i];
    double n_added = 0.0;
    for (const std::size_t i : open) {
      wanted[i] = weight > 0.0 ? total * weights[i] / weight : total / static_cast<double>(open.size());
      shares[i] = std::min<double>(caps[i], std::max<double>(wanted[i], floors.empty() ? 0 : floors[i]));
      n_added += shares[i] - wanted[i];
    }
    double n_settled = 0.0;
    const auto binds = [&](std::size_t i) {
      const bool is_bound = n_added > 0.0 ? shares[i] > wanted[i] : shares[i] < wanted[i];
      if (is_bound) n_settled += shares[i];
      return is_bound;
    };
    if (std::erase_if(open, binds) == 0) break;
    total = std::max(0.0, total - n_settled);
  }
  return shares;
}

}  // namespace

std::vector<std::int32_t> share_out(std::int32_t total, std::span<const double> weights,
                                    std::span<const std::int32_t> caps, std::span<const std::int32_t> floors) {
  EBB_CHECK(weights.size() == caps.size() && (floors.empty() || floors.size() == caps.size()),
            "{} weights, {} caps, {} floors", weights.size(), caps.size(), floors.size());
  const std::vector<double> shares = fill(total, weights, caps, floors);
  std::vector<std::int32_t> whole;
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  std::int64_t n_all = 0;
  std::int64_t n_given = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    n_all += caps[i];
    whole.push_back(std::min(caps[i], static_cast<std::int32_t>(std::floor(shares[i] + kNoise))));
    n_given += whole.back();
  }
  std::int64_t n_left = std::min<std::int64_t>(total, n_all) - n_given;
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) {
    return std::round((shares[i] - std::floor(shares[i] + kNoise)) / kNoise);
  });
  while (n_left > 0) {
    for (const std::size_t i : order) {
      if (n_left == 0 || whole[i] == caps[i]) continue;
      ++whole[i];
      --n_left;
    }
  }
  return whole;
}

}  // namespace ebb
