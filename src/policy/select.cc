#include "policy/select.h"

#include <algorithm>
#include <map>

namespace ebb {
namespace {

// Of the best score. Lower: blocks come back that share a common word. Higher: a fact that is said in two places is half
// recalled.
constexpr double kWorth = 0.5;
constexpr double kNeighbour = 0.5;

}  // namespace

Selection select_blocks(std::span<const Scored> ranked, const std::vector<bool>& is_hot, std::int32_t max_blocks) {
  if (ranked.empty()) return {};
  const auto n_blocks = static_cast<std::int32_t>(is_hot.size());
  std::map<BlockIndex, double> worth;
  double best = 0.0;  // of cold blocks
  for (const Scored& scored : ranked) {
    if (!is_hot[scored.block.index()]) best = std::max(best, scored.score);
    for (const std::int32_t step : {-1, 0, 1}) {
      const std::int32_t b = scored.block.value() + step;
      if (b < 0 || b >= n_blocks) continue;
      double& w = worth[BlockIndex(b)];
      w = std::max(w, step == 0 ? scored.score : kNeighbour * scored.score);
    }
  }
  std::vector<Scored> order;
  for (const auto& [block, score] : worth) {
    if (score >= kWorth * best) order.push_back({block, score});
  }
  std::ranges::stable_sort(order, [](const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score > b.score : a.block > b.block;
  });
  Selection selection;
  for (const Scored& candidate : order) {
    std::vector<BlockIndex>& chosen = is_hot[candidate.block.index()] ? selection.keep : selection.recall;
    if (std::ssize(chosen) < max_blocks) chosen.push_back(candidate.block);
  }
  return selection;
}

}  // namespace ebb
