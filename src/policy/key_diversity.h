// How unlike blocks are by their keys: what Adaptive R-KV's second choice wants to be told (policy/adaptive_rkv.h).
//
// Whoever has the keys as plain numbers is told it of each block and token, as OpenVINO GenAI's kernel computes it, in float
// with sums in double. A policy has no keys but their mean directions (policy/evidence.h), and is told it of those. Thread rule:
// pure functions.
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

// Runs of tokens, of which the mean of the keys is known, each key divided by its length.
struct RowDirections {
  std::span<const float> directions;  // [n_rows, n_heads, head_dim]; zeros where nothing is known
  std::size_t n_heads = 1;
  std::size_t head_dim = 0;
  std::int32_t n_tokens = 1;  // of each row

  [[nodiscard]] std::size_t n_rows() const { return head_dim == 0 ? 0 : directions.size() / (n_heads * head_dim); }
};

// How unlike each of these rows (ascending) is to all of them: minus the sum over rows and heads of the average cosine of its keys
// and theirs, those left out that are below the average of the row with all rows. The average of two rows is exact, a token's
// cosine with itself left out; what is left out goes by rows. Of rows of one token it is what key_diversity() sums up to over
// those tokens and heads; it is not divided, so that what ties stays equal. Takes n_heads * (n_rows + rows^2) * head_dim products.
[[nodiscard]] std::vector<double> direction_diversity(const RowDirections& all, std::span<const std::int32_t> rows);

}  // namespace ebb
