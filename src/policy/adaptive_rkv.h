// Adaptive R-KV: blocks stay by their share of the attention, then by how unlike the other candidates their keys are.
//
// The means of the last passes stand for a token's score; what looks like what stays anyway may leave (OpenVINO GenAI's
// Adaptive R-KV, after Cai et al. 2025, "R-KV"). A block's diversity comes from the keys, which it does not see: whoever has
// them computes it and hands it in. Thread rule: one thread at a time for RecentPasses; the rest are pure functions.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace ebb {

// One layer's vectors of the last passes since its last eviction, as they came.
class RecentPasses {
 public:
  explicit RecentPasses(std::int32_t most) : most_(most) {}

  // No shorter than the one before; the oldest leaves when there would be more than `most`.
  void add(std::span<const float> scores);
  void clear() { passes_.clear(); }
  // By token, as long as the newest; a pass that had not seen a token counts as 0 for it. Only where add() was called.
  [[nodiscard]] std::vector<double> mean() const;

 private:
  std::int32_t most_;
  std::deque<std::vector<float>> passes_;  // oldest first
};

struct AdaptiveChoice {
  std::span<const double> block_scores;  // of the evictable blocks
  std::int32_t n_keep = 0;               // 0..n_blocks
  double attention_mass = 0.9;
  // [n_blocks, n_blocks * block_size]: for each block, how unlike each token is; larger is more diverse.
  std::span<const float> diversity;
};

// The blocks to evict, ascending; 0 is the first evictable block. The best by score stay until they have attention_mass of
// the total, or are n_keep; of the others those whose mean diversity among themselves is the largest. Ties stay with the
// lower number.
[[nodiscard]] std::vector<std::int32_t> choose_adaptive(const AdaptiveChoice& choice);

}  // namespace ebb
