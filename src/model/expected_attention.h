// ExpectedAttention: what queries to come are expected to give the tokens of one KV head (Devoto et al. 2025, arXiv 2510.00636).
//
//   logit of a token   mean k + k^T spread k, for each query head of the group    (model/query_forecast.h)
//   attention a        softmax of the logits over the tokens that were added; the mean over the group
//
// Blocks are added with their keys, rotated for whatever anchors they have, and values; what comes out is of each block the mean
// over its tokens of a, of a |v| and of |v|. The logarithm of a log-normal mean grows with the square of a key, so that few keys
// may take nearly all: logits are floats, and what is exponentiated is at most 0 and a double. One that is no number counts as 0.
//
// Price: d^2 / 2 products for each token and query head, d if there is no spread, and 4 bytes for each. Of a model with 16 layers of 32
// heads of 64 and 8192 hot tokens that is 8.7e9 products for a choice: 0.65 s of one processor of a busy EPYC with AVX2, 1.4 s with the
// portable loops, shared among threads by head. It knows rows of numbers: no frames, blocks' names, sessions
// or who asks. Thread rule: one thread at a time; several heads at once.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/query_forecast.h"

namespace ebb {

// Means over the tokens of a block; of one that has none, 0.
struct ExpectedBlock {
  double attention = 0.0;
  double weighted_value = 0.0;  // of attention times the length of the value
  double value_length = 0.0;
};

class ExpectedAttention {
 public:
  // One forecast for each query head of the KV head.
  explicit ExpectedAttention(std::vector<QueryForecast> group);

  // A block of tokens: keys [n_tokens][n_dims] and values [n_tokens][n_value_dims], one row behind the other.
  struct Tokens {
    std::size_t n_tokens = 0;
    std::span<const float> keys;
    std::span<const float> values;
  };
  void add(const Tokens& block);
  // Of the blocks that were added, in their order. Once.
  [[nodiscard]] std::vector<ExpectedBlock> finish();

 private:
  void compute_lanes();

  std::vector<QueryForecast> group_;
  std::size_t n_dims_;
  std::vector<std::size_t> ends_;           // [block]: how many tokens it and those before it have
  std::vector<float> lengths_;              // [token]
  std::vector<std::vector<float>> logits_;  // [query head][token]
  std::vector<float> lanes_;                // keys to come, [n_dims][kExpectedLanes]
  std::size_t n_lanes_ = 0;                 // of them, those that are there
};

}  // namespace ebb
