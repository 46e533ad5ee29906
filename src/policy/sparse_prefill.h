// Sparse prefill: which blocks a pass of the prompt need not look at. Nothing is freed; what is skipped stays available.
//
// Two schemes of OpenVINO GenAI: tri-shape keeps the first and the last blocks, XAttention (Xu et al. 2025) scores squares of
// queries and keys by their antidiagonals and keeps the best until they have a share of the attention. It takes plain numbers
// and runs no attention. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace ebb {

// Where a chunk of the prompt stands; tokens that were evicted count.
struct ChunkPlace {
  std::int32_t n_prompt = 0;
  std::int32_t n_processed = 0;  // before the chunk
  std::int32_t n_chunk = 0;
};

struct TriShape {
  std::int32_t dense_tail_tokens = 100;  // with fewer than these behind it a chunk looks at everything
  std::int32_t start_tokens = 128;
  std::int32_t recent_tokens = 1920;
};

// Numbers of the blocks to skip, ascending; n_cached: tokens before the chunk. kInvalidArgument unless the retained sizes are
// multiples of block_size.
Result<std::vector<std::int32_t>> find_tri_shape_skips(const TriShape& shape, const ChunkPlace& place,
                                                       std::int32_t n_cached, std::int32_t block_size);

struct XAttention {
  double threshold = 0.8;  // the share of a row's attention that is kept; 0: all of it, and nothing is computed
  std::int32_t block_size = 64;
  std::int32_t stride = 8;  // divides block_size; every stride-th antidiagonal stands for all
};

// The threshold for a chunk: 0, which is dense, for a pass of one token and where some, but fewer than dense_tail_tokens, come
// behind it. The chunk that ends the prompt is sparse again.
[[nodiscard]] double threshold_of_chunk(double threshold, std::int32_t dense_tail_tokens, const ChunkPlace& place);

struct AttentionRows {
  std::span<const float> queries;  // [n_tokens, n_heads, head_dim]
  std::span<const float> keys;     // [n_tokens, n_kv_heads, head_dim]
  std::int32_t n_tokens = 0;
  std::int32_t n_heads = 1;  // a multiple of n_kv_heads
  std::int32_t n_kv_heads = 1;
  std::int32_t head_dim = 0;
};

// By head and block of queries, the blocks of keys that it looks at, ascending: its own and the first always, of the others the
// best (ties to the lower number) until the kept have threshold of the row, the one that crosses included. Of new tokens
// only. kInvalidArgument for sizes that do not fit each other, and what is no finite number.
Result<std::vector<std::vector<std::vector<std::int32_t>>>> select_squares(const XAttention& config,
                                                                           const AttentionRows& rows);

}  // namespace ebb
