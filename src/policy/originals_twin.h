// Test support: eviction policies as their papers define them, in naive loops over float64 arrays.
//
// Tests compare what the runtime chooses with what these choose. They know nothing of blocks, frames, sessions or evidence:
// only softmax weights, keys, values and queries of the tokens that one layer has cached, oldest first. A token is its
// index among those. Each function opens with the definition that it implements and its paper.
//
// Scores are by KV head, [n_kv_heads][n_tokens], or one Row where the original has one set of tokens for all heads of a
// layer. Higher stays longer; kAlways: the original never lets it go. The tokens kept for a budget are
// keep_highest(scores, budget), unless a function beside the scores says otherwise.
//
// Law: every order is total. A NaN or an infinite input stops the process. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ebb::originals {

using Row = std::vector<double>;
using Rows = std::vector<Row>;            // [n][m]
using Heads = std::vector<Rows>;          // [n_heads][n][m]
using Tokens = std::vector<std::size_t>;  // ascending
using Counts = std::vector<std::size_t>;

inline constexpr double kAlways = std::numeric_limits<double>::infinity();

// Victims leave by (score ascending, token ascending): of equals the older goes.
Tokens keep_highest(const Row& scores, std::size_t budget);
std::vector<Tokens> keep_highest(const Rows& scores, std::size_t budget_per_head);
std::vector<Tokens> keep_highest(const Rows& scores, const Counts& budgets);
// One ranking over all heads, of one layer or of many: by (score ascending, token ascending, head ascending).
std::vector<Tokens> keep_highest_of_all(const Rows& scores, std::size_t budget_of_all);

// Gives the first and the last tokens of each head kAlways.
Rows protect(Rows scores, std::size_t n_first, std::size_t n_last);

// Recency, or sliding window: the oldest leaves first; no sinks.
Row recency_scores(std::size_t n_tokens);

// StreamingLLM (Xiao et al. 2023, arXiv 2309.17453): the first n_sinks tokens and the most recent ones stay.
Row streaming_scores(std::size_t n_tokens, std::size_t n_sinks);

struct StreamingWindow {
  std::size_t n_sinks = 4;
  std::size_t n_recent = 512;
};

// StreamingLLM before it appends n_new tokens: where n_tokens + n_new > n_sinks + n_recent, the first n_sinks and the last
// n_recent - n_new stay. A larger append must be cut into pieces of at most n_recent.
Tokens streaming_kept(std::size_t n_tokens, std::size_t n_new, const StreamingWindow& window);

// Random: a hash of (seed, token) in [0, 1). A token keeps its score as others come.
Row random_scores(std::size_t n_tokens, std::uint64_t seed);

enum class Pool { kAverage, kMaximum };

// Over `kernel` (odd) neighbours with stride 1. The average counts the zeros beyond the ends; the maximum does not look there.
Row pool(const Row& row, Pool kind, std::size_t kernel);

Row softmax(const Row& logits);
double dot(const Row& a, const Row& b);
double norm(const Row& a);

// From [n_heads][n_tokens] to [n_kv_heads][n_tokens]: the mean over the query heads of a KV head.
Rows mean_over_groups(const Rows& by_query_head, std::size_t n_kv_heads);

// Every head has as many rows, every row as many numbers, all finite; and n_heads is a multiple of n_kv_heads.
void check_heads(const Heads& heads, std::size_t n_kv_heads);

}  // namespace ebb::originals
