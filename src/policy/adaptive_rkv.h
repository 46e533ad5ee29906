// Adaptive R-KV: blocks stay by their share of the attention, then by how unlike the other candidates their keys are.
//
// The means of the last passes stand for a token's score; what looks like what stays anyway may leave (OpenVINO GenAI's
// Adaptive R-KV, after Cai et al. 2025, "R-KV"). A block's diversity comes from the keys, which it does not see: whoever has
// them computes it and hands it in. Thread rule: one thread at a time for RecentPasses; the rest are pure functions.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
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

// What is asked before it is known how many blocks stay.
struct AdaptiveRule {
  std::span<const double> block_scores;  // of the evictable blocks
  double attention_mass = 0.9;
  // At least 1. More may be left without the mass; then as many of the best of them stay by score as if they had it, since
  // comparing takes time with the square of how many are compared.
  std::int32_t n_most_compared = std::numeric_limits<std::int32_t>::max();
};
// Of blocks, ascending: how unlike each is to all of them together; larger is more diverse.
using DiversityAmong = std::function<std::vector<double>(std::span<const std::int32_t> blocks)>;

// All blocks in the order in which they leave. The last are the best by score, which have attention_mass of the total between
// them, the lowest of them first; before them the others leave, the least diverse among themselves first. Of equals the higher
// number leaves first. Whoever keeps n keeps the last n: what the mass holds beyond them does not stay.
[[nodiscard]] std::vector<std::int32_t> order_adaptive(const AdaptiveRule& rule, const DiversityAmong& diversity_among);

struct AdaptiveChoice {
  std::span<const double> block_scores;  // of the evictable blocks
  std::int32_t n_keep = 0;               // 0..n_blocks
  double attention_mass = 0.9;
  // [n_blocks, n_blocks * block_size]: for each block, how unlike each token is; larger is more diverse.
  std::span<const float> diversity;
};

// The blocks to evict by order_adaptive(), ascending; 0 is the first evictable block. The best by score stay until they have
// attention_mass of the total, or are n_keep; of the others those whose mean diversity among themselves is the largest. Ties
// stay with the lower number.
[[nodiscard]] std::vector<std::int32_t> choose_adaptive(const AdaptiveChoice& choice);

}  // namespace ebb
