// A turn's counters: where its tokens came from, and how far they are.
#include <algorithm>

#include "session/turn.h"

namespace ebb {

// Of the prompt, what steps have computed so far.
std::int32_t Turn::n_new() const {
  return std::min(n_prompt_, session_.end() - first_) - stats_.n_adopted - stats_.n_grafted;
}

std::int32_t Turn::n_computed() const {
  std::int32_t n_tokens = n_new();
  for (const BlockIndex block : stats_.recomputed) n_tokens += session_.residency_.span(block).n_tokens();
  return recompute_.empty() ? n_tokens : n_tokens + recompute_.front().n_done;
}

std::int32_t Turn::n_to_compute() const {
  std::int32_t n_tokens = std::max(0, n_prompt_ - (session_.end() - first_));
  for (const Recompute& next : recompute_) n_tokens += session_.residency_.span(next.block).n_tokens() - next.n_done;
  return n_tokens;
}

// Law 7: every token that was there before the turn is hot already, shared, recalled, computed again, or a hole.
void Turn::count_prefix() {
  if (prefix_counted_) return;
  prefix_counted_ = true;
  stats_.n_new = n_new();
  stats_.n_recalled_approximate += stats_.n_grafted;
  for (std::int32_t b = 0; b < session_.n_blocks(); ++b) {
    const std::int32_t n = intersect(session_.residency_.span(BlockIndex(b)), {Position(0), first_}).n_tokens();
    if (!session_.residency_.is_hot(BlockIndex(b))) {
      stats_.n_holes += n;
    } else if (std::ranges::find(stats_.recomputed, BlockIndex(b)) != stats_.recomputed.end()) {
      stats_.n_recomputed += n;
    } else if (std::ranges::find(stats_.shared, BlockIndex(b)) != stats_.shared.end()) {
      stats_.n_shared += n;
    } else if (std::ranges::find(stats_.recalled, BlockIndex(b)) != stats_.recalled.end()) {
      (session_.blocks_[static_cast<std::size_t>(b)].turned ? stats_.n_recalled_approximate
                                                            : stats_.n_recalled_exact) += n;
    } else {
      stats_.n_hot_already += n;
    }
  }
}

}  // namespace ebb
