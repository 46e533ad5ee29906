// Test support: originals that score tokens by the attention they receive (policy/originals_twin.h says what these are).
//
// weights [n_heads][n_queries][n_tokens] are softmax weights, 0 where a query does not see a token; the last row is the
// newest query, the last column the newest token. A row of zeros, of a query that sees nothing, adds nothing and counts
// as a query. values [n_kv_heads][n_tokens][head_dim_v].
#pragma once

#include <cstddef>

#include "policy/originals_twin.h"

namespace ebb::originals {

// TOVA (Oren et al. 2024, arXiv 2401.06104): the last query's weight, mean over all heads; one set for all heads.
Row tova_scores(const Heads& weights);

// H2O (Zhang et al. 2023, arXiv 2306.14048): the sum of weights over all queries, mean over the query heads of a KV head;
// the last n_recent tokens stay. Its `heavy` is the budget less n_recent.
Rows h2o_scores(const Heads& weights, std::size_t n_kv_heads, std::size_t n_recent);

// kvpress' ObservedAttention: H2O's sum divided by the number of queries that could see the token, T - j, of a prompt whose
// T queries are all given; nothing is protected.
Rows observed_attention_scores(const Heads& weights, std::size_t n_kv_heads);

struct SnapKv {
  std::size_t window = 64;
  Pool pool = Pool::kAverage;
  std::size_t kernel = 5;
};

// SnapKV (Li et al. 2024, arXiv 2404.14469): weights of the last `window` queries on the tokens before the window, mean over
// those queries, pooled along those tokens, mean over the query heads of a KV head; the window stays.
Rows snapkv_scores(const Heads& weights, std::size_t n_kv_heads, const SnapKv& snapkv);

// DefensiveKV (Feng et al. 2025, arXiv 2510.13334): over all given queries the largest weight (mean over the query heads of
// a KV head), but at least the mean of these over the head's tokens, times ||v W_O||, mean over those query heads. The last
// n_window tokens stay and are left out of that mean. output [n_heads][head_dim_v][n_embd].
// The layer form: keep_highest_of_all over the scores of all layers.
Rows defensivekv_scores(const Heads& weights, const Heads& values, const Heads& output, std::size_t n_window);

// DropKV: what a head's output o would move by without the token, squared: (m / (1 - m))^2 ||o - v||^2 with weight m; mean
// over all given queries and the query heads of a KV head. A token that is all that a query sees always stays.
Rows dropkv_scores(const Heads& weights, const Heads& values);

// KVzip (Kim et al. 2025, arXiv 2505.23416): the largest weight that a token receives from the queries of a replay of its
// chunk, over the query heads of a KV head; sinks score 1. A row has zeros for tokens of other chunks.
Rows kvzip_scores(const Heads& replay_weights, std::size_t n_kv_heads, std::size_t n_sinks = 4);

// Of the heads of all layers together the lowest floor(removed * n) of n scores leave.
std::vector<Tokens> kvzip_kept(const Rows& scores_of_all_layers, double removed);

}  // namespace ebb::originals
