// Test support: originals that score tokens by keys, values and queries (policy/originals_twin.h says what these are).
//
// keys [n_kv_heads][n_tokens][head_dim] as cached, rotated; values [n_kv_heads][n_tokens][head_dim_v]; queries
// [n_heads][n_queries][head_dim], the last row the newest.
#pragma once

#include <cstddef>

#include "policy/originals_twin.h"

namespace ebb::originals {

// KeyDiff (Park et al. 2025, arXiv 2504.15364): -cos(k, a), a = mean over the tokens of k / ||k||. Nothing is protected. A key
// of zeros, which has no direction, adds nothing to a, and has a cosine of 0 to it; so has every key where a is zero.
Rows keydiff_scores(const Heads& keys);

// KeyDiff of a prompt over its budget: the first `budget` tokens; then with each next block_size tokens, scored together with
// those kept so far, the highest `budget` of both.
std::vector<Tokens> keydiff_kept(const Heads& keys, std::size_t budget, std::size_t block_size = 128);

// Knorm (Devoto et al. 2024, arXiv 2406.11430): -||k||.
Rows knorm_scores(const Heads& keys);

struct LagKv {
  std::size_t n_sinks = 16;
  std::size_t lag = 1024;
  double keep = 0.5;
  double rho = 1;
  double smallest_range = 1e-6;  // a narrower channel counts as this wide: where hi = lo the original divides by zero
};

// LagKV (Liang et al. 2025, arXiv 2504.04704): after the sinks, partitions of `lag` tokens. By channel, lo and hi are those of
// the next partition; z = (x - lo) / (hi - lo); u = standard deviation of z over channels (divisor head_dim - 1); softmax of u
// over the partition. Keys' + rho * values'. Sinks, the last full partition and what follows it stay.
Rows lagkv_scores(const Heads& keys, const Heads& values, const LagKv& lagkv);

// Of each partition that has scores the highest floor(keep * lag), and all that stays.
std::vector<Tokens> lagkv_kept(const Rows& scores, const LagKv& lagkv);

struct ExpectedAttention {
  std::size_t n_sinks = 4;
  std::size_t n_future = 512;
  std::size_t next_position = 0;  // of the first query to come
  double theta = 10000;           // RoPE's, over halves: channel i turns with channel i + head_dim / 2
  double epsilon = 0;
};

// ExpectedAttention (Devoto et al. 2025, arXiv 2510.00636): per query head mean and covariance (divisor their number) of the
// queries before RoPE after the first n_sinks; both turned by the mean rotation R of the next n_future positions, R mu and
// R Sigma R^T; a = softmax over tokens that are no sinks of mu k / sqrt(d) + k^T Sigma k / (2 d), mean over the query heads of
// a KV head; (a + epsilon) ||v||. Sinks stay.
Rows expected_attention_scores(const Heads& queries, const Heads& keys, const Heads& values,
                               const ExpectedAttention& expected);

struct RKv {
  std::size_t window = 8;
  std::size_t kernel = 7;
  double lambda = 0.07;  // the paper says 0.1
  double similar = 0.5;
};

// R-KV (Cai et al. 2025, arXiv 2505.24133): lambda I - (1 - lambda) r, with `window` queries, rotated; the last `window` tokens
// stay. I: softmax over the tokens before the window of the largest q k / sqrt(d) of the query heads of a KV head, mean over
// queries, max pool. r: cosines of keys (norms + 1e-8), 0 on the diagonal; in each row the last one above `similar` becomes 0,
// or the first of all where there is none; softmax over all tokens of the means over the rows.
Rows rkv_scores(const Heads& queries, const Heads& keys, const RKv& rkv);

// r of the above, of one head and of all its tokens.
Row rkv_redundancy(const Rows& keys, double similar);

}  // namespace ebb::originals
