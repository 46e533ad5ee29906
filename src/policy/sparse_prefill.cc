#include "policy/sparse_prefill.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/keep_share.h"
#include "base/to_size.h"

namespace ebb {
namespace {

constexpr std::int32_t kMostSparseTokens = 1 << 20;

using SquareSums = std::vector<std::vector<double>>;  // [block of queries][block of keys at or before it]
using KeptSquares = std::vector<std::vector<std::int32_t>>;

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

Status check_rows(const XAttention& config, const AttentionRows& rows) {
  const bool is_config = std::isfinite(config.threshold) && config.threshold >= 0.0 && config.stride >= 1 &&
                         config.block_size >= 1 && config.block_size % config.stride == 0;
  if (!is_config) {
    return error(Code::kInvalidArgument,
                 "a threshold of {}, blocks of {} and a stride of {}: the stride divides the block", config.threshold,
                 config.block_size, config.stride);
  }
  const bool is_shape = rows.n_tokens >= 0 && rows.n_tokens <= kMostSparseTokens && rows.n_kv_heads >= 1 &&
                        rows.n_heads >= rows.n_kv_heads && rows.n_heads % rows.n_kv_heads == 0 && rows.head_dim >= 1;
  if (!is_shape) {
    return error(Code::kInvalidArgument, "{} tokens with {} query heads on {} KV heads of {}", rows.n_tokens,
                 rows.n_heads, rows.n_kv_heads, rows.head_dim);
  }
  const std::size_t n_values = to_size(rows.n_tokens) * to_size(rows.head_dim);
  if (rows.queries.size() != n_values * to_size(rows.n_heads) ||
      rows.keys.size() != n_values * to_size(rows.n_kv_heads)) {
    return error(Code::kInvalidArgument, "{} numbers of queries and {} of keys for {} tokens", rows.queries.size(),
                 rows.keys.size(), rows.n_tokens);
  }
  if (all_finite(rows.queries) && all_finite(rows.keys)) return {};
  return error(Code::kInvalidArgument, "a query or key has a value that is no finite number");
}

double dot(const AttentionRows& rows, std::int32_t head, std::int32_t query, std::int32_t key) {
  const std::size_t dim = to_size(rows.head_dim);
  const std::int32_t kv_head = head / (rows.n_heads / rows.n_kv_heads);
  const auto q = rows.queries.subspan((to_size(query) * to_size(rows.n_heads) + to_size(head)) * dim, dim);
  const auto k = rows.keys.subspan((to_size(key) * to_size(rows.n_kv_heads) + to_size(kv_head)) * dim, dim);
  return std::inner_product(q.begin(), q.end(), k.begin(), 0.0);
}

// The antidiagonal of `stride` queries and as many keys: the last query with the first key, and so on. What is behind the end
// of the tokens adds nothing.
double antidiagonal(const AttentionRows& rows, std::int32_t head, std::int32_t stride, std::int32_t query_group,
                    std::int32_t key_group) {
  double sum = 0.0;
  for (std::int32_t i = 0; i < stride; ++i) {
    const std::int32_t query = query_group * stride + stride - 1 - i;
    const std::int32_t key = key_group * stride + i;
    if (query < rows.n_tokens && key < rows.n_tokens) sum += dot(rows, head, query, key);
  }
  return sum / (std::sqrt(static_cast<double>(rows.head_dim)) * stride);
}

// Softmax over the groups of keys at or before each group of queries, added up by square.
SquareSums sum_squares(const XAttention& config, const AttentionRows& rows, std::int32_t head) {
  const std::int32_t n_groups = (rows.n_tokens + config.stride - 1) / config.stride;
  const std::int32_t groups_per_block = config.block_size / config.stride;
  SquareSums squares;
  for (std::int32_t query = 0; query < n_groups; ++query) {
    const std::size_t query_block = to_size(query / groups_per_block);
    if (query_block == squares.size()) squares.emplace_back(query_block + 1, 0.0);
    std::vector<double> weights;
    for (std::int32_t key = 0; key <= query; ++key) {
      weights.push_back(antidiagonal(rows, head, config.stride, query, key));
    }
    const double largest = std::ranges::max(weights);
    double total = 0.0;
    for (double& weight : weights) total += weight = std::exp(weight - largest);
    for (std::int32_t key = 0; key <= query; ++key) {
      squares[query_block][to_size(key / groups_per_block)] += weights[to_size(key)] / total;
    }
  }
  return squares;
}

KeptSquares all_squares(std::int32_t n_blocks) {
  KeptSquares squares;
  for (std::int32_t block = 0; block < n_blocks; ++block) {
    std::vector<std::int32_t>& row = squares.emplace_back(to_size(block) + 1);
    std::iota(row.begin(), row.end(), 0);
  }
  return squares;
}

}  // namespace

Result<std::vector<std::int32_t>> find_tri_shape_skips(const TriShape& shape, const ChunkPlace& place,
                                                       std::int32_t n_cached, std::int32_t block_size) {
  if (block_size < 1 || shape.start_tokens < 0 || shape.recent_tokens < 0 || shape.start_tokens % block_size != 0 ||
      shape.recent_tokens % block_size != 0) {
    return error(Code::kInvalidArgument,
                 "retained start {} and recent {} are no multiples of the block size {}: whole blocks are skipped",
                 shape.start_tokens, shape.recent_tokens, block_size);
  }
  std::vector<std::int32_t> skips;
  const std::int64_t n_rest = std::int64_t{place.n_prompt} - place.n_processed - place.n_chunk;
  if (n_rest < shape.dense_tail_tokens) return skips;
  const std::int32_t end = n_cached / block_size - shape.recent_tokens / block_size;
  for (std::int32_t block = shape.start_tokens / block_size; block < end; ++block) skips.push_back(block);
  return skips;
}

double threshold_of_chunk(double threshold, std::int32_t dense_tail_tokens, const ChunkPlace& place) {
  const std::int64_t n_rest = std::int64_t{place.n_prompt} - place.n_processed - place.n_chunk;
  const bool is_dense = place.n_chunk <= 1 || (n_rest > 0 && n_rest < dense_tail_tokens);
  return is_dense ? 0.0 : threshold;
}

Result<std::vector<std::vector<std::vector<std::int32_t>>>> select_squares(const XAttention& config,
                                                                           const AttentionRows& rows) {
  EBB_RETURN_IF_ERROR(check_rows(config, rows));
  std::vector<KeptSquares> by_head;
  for (std::int32_t head = 0; head < rows.n_heads; ++head) {
    KeptSquares& kept = by_head.emplace_back();
    if (config.threshold == 0.0) {
      kept = all_squares((rows.n_tokens + config.block_size - 1) / config.block_size);
      continue;
    }
    for (const std::vector<double>& row : sum_squares(config, rows, head))
      kept.push_back(keep_share(row, config.threshold));
  }
  return by_head;
}

}  // namespace ebb
