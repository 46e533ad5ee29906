#include "policy/choose.h"

#include <algorithm>
#include <cmath>

namespace ebb {

Status Watermarks::validate() const {
  if (low > 0.0 && low <= high && high <= 1.0) return {};
  return error(Code::kInvalidArgument, "watermarks of {} (low) and {} (high); give 0 < low <= high <= 1", low, high);
}

std::int32_t count_victims(std::int32_t n_hot, std::int32_t n_new, std::int32_t budget, const Watermarks& watermarks) {
  const auto mark = [&](double share) { return static_cast<std::int32_t>(std::floor(share * budget)); };
  const std::int32_t needed = std::max(0, n_hot + n_new - budget);
  if (n_hot + n_new <= mark(watermarks.high)) return needed;
  return std::max(needed, n_hot + n_new - mark(watermarks.low));
}

std::vector<Victim> choose_victims(const Policy& policy, const Evidence& evidence, std::int32_t n_wanted,
                                   std::int32_t n_needed) {
  const std::vector<double> scores = policy.score(evidence);
  EBB_CHECK(scores.size() == evidence.blocks.size(), "policy {}: {} scores for {} blocks", policy.name(), scores.size(),
            evidence.blocks.size());
  std::vector<Victim> victims;
  std::int32_t n_frames = 0;
  for (const Hold hold : {Hold::kNone, Hold::kProtected, Hold::kKept}) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      EBB_CHECK(!std::isnan(scores[i]), "policy {}: block {} has no score", policy.name(),
                evidence.blocks[i].block.value());
      if (evidence.blocks[i].hold == hold && scores[i] != kNeverLeaves) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
    const std::int32_t n_most = hold == Hold::kNone ? n_wanted : n_needed;
    for (const std::size_t i : order) {
      if (n_frames >= n_most) break;
      victims.push_back({.block = evidence.blocks[i].block, .head = evidence.blocks[i].head});
      n_frames += evidence.blocks[i].n_frames;
    }
  }
  return victims;
}

}  // namespace ebb
