#include "policy/choose.h"

#include <algorithm>

#include "base/check.h"

namespace ebb {

std::vector<BlockIndex> choose_victims(const Policy& policy, const Evidence& evidence, std::int32_t n_blocks) {
  const std::vector<double> scores = policy.score(evidence);
  EBB_CHECK(scores.size() == evidence.blocks.size(), "policy {}: {} scores for {} blocks", policy.name(), scores.size(),
            evidence.blocks.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!evidence.blocks[i].pinned) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
  if (order.size() > static_cast<std::size_t>(n_blocks)) order.resize(static_cast<std::size_t>(n_blocks));

  std::vector<BlockIndex> victims;
  victims.reserve(order.size());
  for (const std::size_t i : order) victims.push_back(evidence.blocks[i].block);
  return victims;
}

}  // namespace ebb
