// How unlike each block's keys are to each token's: what Adaptive R-KV's second choice wants to be told.
//
// It is beside the policies for those who have the keys as plain numbers; no policy calls it. As OpenVINO GenAI's kernel
// computes it, in float with sums in double. Thread rule: a pure function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace ebb {

struct KeyShape {
  std::int32_t n_tokens = 0;  // a multiple of block_size
  std::int32_t n_kv_heads = 1;
  std::int32_t head_dim = 0;
  std::int32_t block_size = 1;
};

// keys: [n_tokens, n_kv_heads, head_dim] of the evictable blocks, rotated as they are cached. The answer is
// [n_tokens / block_size, n_tokens]: minus the cosines of the block's keys and the token's, each at least the mean of its
// row, their own left out, averaged over heads; the larger, the more diverse. kInvalidArgument for other sizes, and keys that
// are no finite numbers.
Result<std::vector<float>> key_diversity(std::span<const float> keys, const KeyShape& shape);

}  // namespace ebb
