#include "policy/select.h"

#include <algorithm>
#include <map>

namespace ebb {
namespace {

// Of the best score. Lower: blocks come back that share a common word. Higher: a fact that is said in two places is half
// recalled.
constexpr double kWorth = 0.5;
constexpr double kNeighbour = 0.5;
// ... and of what words near the border gave. Below 1, so that a block comes before its neighbour.
constexpr double kBeyond = 0.9;

}  // namespace

Selection select_blocks(std::span<const Scored> ranked, const std::vector<bool>& is_hot, std::int32_t max_blocks) {
  if (ranked.empty()) return {};
  const auto n_blocks = static_cast<std::int32_t>(is_hot.size());
  std::map<BlockIndex, double> worth;
  double best = 0.0;  // of cold blocks
  for (const Scored& scored : ranked) {
    if (!is_hot[scored.block.index()]) best = std::max(best, scored.score);
    const auto is_worth = [&](std::int32_t b, double w) {
      if (b < 0 || b >= n_blocks) return;
      double& most = worth[BlockIndex(b)];
      most = std::max(most, w);
    };
    is_worth(scored.block.value(), scored.score);
    is_worth(scored.block.value() - 1, std::max(kNeighbour * scored.score, kBeyond * scored.at_begin));
    is_worth(scored.block.value() + 1, std::max(kNeighbour * scored.score, kBeyond * scored.at_end));
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
