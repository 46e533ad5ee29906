#include "policy/sparse_prefill.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Kept = std::vector<std::vector<std::int32_t>>;

TEST(TriShape, skips_what_lies_between_the_retained_start_and_recent_blocks) {
  const TriShape shape{.dense_tail_tokens = 100, .start_tokens = 32, .recent_tokens = 64};
  const auto skips = [&](std::int32_t n_prompt, std::int32_t n_processed) {
    return find_tri_shape_skips(shape, {.n_prompt = n_prompt, .n_processed = n_processed, .n_chunk = 64}, n_processed,
                                16)
        .value();
  };
  EXPECT_THAT(skips(1000, 136), ElementsAre(2, 3)) << "8 full blocks, of which 2 and 4 are retained";
  EXPECT_THAT(skips(1000, 96), IsEmpty()) << "no more than are retained";
  EXPECT_THAT(skips(300, 136), ElementsAre(2, 3)) << "a rest of exactly the dense tail is still sparse";
  EXPECT_THAT(skips(299, 136), IsEmpty());
  EXPECT_THAT(skips(200, 136), IsEmpty()) << "the end of the prompt";
}

TEST(TriShape, refuses_retained_sizes_that_are_no_whole_blocks) {
  EXPECT_THAT(find_tri_shape_skips({.start_tokens = 100}, {}, 0, 16).status().message(), HasSubstr("no multiples"));
  EXPECT_FALSE(find_tri_shape_skips({.recent_tokens = 1}, {}, 0, 16).ok());
  EXPECT_FALSE(find_tri_shape_skips({}, {}, 0, 0).ok());
}

TEST(XAttention, is_dense_for_one_token_and_near_the_end_but_not_at_it) {
  const auto threshold = [](std::int32_t n_processed, std::int32_t n_chunk) {
    return threshold_of_chunk(0.8, 100, {.n_prompt = 1000, .n_processed = n_processed, .n_chunk = n_chunk});
  };
  EXPECT_EQ(threshold(0, 900), 0.8);
  EXPECT_EQ(threshold(0, 901), 0.0);
  EXPECT_EQ(threshold(0, 999), 0.0);
  EXPECT_EQ(threshold(500, 500), 0.8);
  EXPECT_EQ(threshold(999, 1), 0.0);
}

// The same from the paper's words: one matrix of regrouped rows times another, softmax, squares.
Kept kept_by_words(const XAttention& config, const std::vector<float>& queries, const std::vector<float>& keys, int n,
                   int d) {
  const int s = config.stride;
  const int n_rows = n / s;
  std::vector<std::vector<double>> regrouped_q;
  std::vector<std::vector<double>> regrouped_k;
  for (int i = 0; i < n_rows; ++i) {
    auto& q = regrouped_q.emplace_back();
    auto& k = regrouped_k.emplace_back();
    for (int t = 0; t < s * d; ++t) {
      q.push_back(queries[static_cast<std::size_t>((i * s + s - 1 - t / d) * d + t % d)]);
      k.push_back(keys[static_cast<std::size_t>((i * s + t / d) * d + t % d)]);
    }
  }
  const int per_block = config.block_size / s;
  Kept kept;
  for (int block = 0; block < n_rows / per_block; ++block) {
    std::vector<double> square(static_cast<std::size_t>(block) + 1);
    double row_sum = 0.0;
    for (int i = block * per_block; i < (block + 1) * per_block; ++i) {
      std::vector<double> e;
      double total = 0.0;
      for (int j = 0; j <= i; ++j) {
        double dot = 0.0;
        for (int t = 0; t < s * d; ++t) {
          dot += regrouped_q[static_cast<std::size_t>(i)][static_cast<std::size_t>(t)] *
                 regrouped_k[static_cast<std::size_t>(j)][static_cast<std::size_t>(t)];
        }
        e.push_back(std::exp(dot / (std::sqrt(static_cast<double>(d)) * s)));
        total += e.back();
      }
      for (int j = 0; j <= i; ++j)
        square[static_cast<std::size_t>(j / per_block)] += e[static_cast<std::size_t>(j)] / total;
    }
    for (const double sum : square) row_sum += sum;
    std::vector<bool> is_kept(square.size());
    is_kept.front() = is_kept.back() = true;
    for (;;) {
      double sum = 0.0;
      std::size_t best = square.size();
      for (std::size_t b = 0; b < square.size(); ++b) {
        if (is_kept[b])
          sum += square[b];
        else if (best == square.size() || square[b] > square[best])
          best = b;
      }
      if (sum >= config.threshold * row_sum || best == square.size()) break;
      is_kept[best] = true;
    }
    auto& list = kept.emplace_back();
    for (std::size_t b = 0; b < square.size(); ++b) {
      if (is_kept[b]) list.push_back(static_cast<std::int32_t>(b));
    }
  }
  return kept;
}

TEST(XAttention, keeps_the_tiles_that_a_plain_computation_keeps) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const XAttention config{.threshold = 0.3 + 0.1 * static_cast<double>(random() % 7), .block_size = 8, .stride = 4};
    const int n = 8 * static_cast<int>(1 + random() % 8);
    std::vector<float> queries(static_cast<std::size_t>(n) * 4);
    std::vector<float> keys(queries.size());
    for (auto* values : {&queries, &keys}) {
      for (float& value : *values) value = static_cast<float>(random() % 17) / 4.0F - 2.0F;
    }
    const auto kept = select_squares(
        config, {.queries = queries, .keys = keys, .n_tokens = n, .n_heads = 1, .n_kv_heads = 1, .head_dim = 4});
    ASSERT_TRUE(kept.ok()) << kept.status().message();
    ASSERT_EQ((*kept)[0], kept_by_words(config, queries, keys, n, 4)) << round;
  }
}

TEST(XAttention, keeps_its_own_and_the_first_and_everything_at_threshold_0) {
  const std::vector<float> zeros(20 * 2);
  const AttentionRows rows{
      .queries = zeros, .keys = std::span(zeros).first(20), .n_tokens = 20, .n_heads = 2, .head_dim = 1};
  const auto sparse = select_squares({.threshold = 0.01, .block_size = 4, .stride = 2}, rows).value();
  ASSERT_EQ(sparse.size(), 2U);
  EXPECT_EQ(sparse[1], (Kept{{0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}}));
  EXPECT_EQ(select_squares({.threshold = 0.0, .block_size = 8, .stride = 2}, rows).value()[0],
            (Kept{{0}, {0, 1}, {0, 1, 2}}));
}

TEST(XAttention, refuses_sizes_that_do_not_fit) {
  const std::vector<float> values(8);
  const AttentionRows rows{.queries = values, .keys = values, .n_tokens = 8, .head_dim = 1};
  EXPECT_TRUE(select_squares({}, rows).ok());
  EXPECT_FALSE(select_squares({.stride = 7}, rows).ok());
  EXPECT_FALSE(select_squares({.threshold = std::nan("")}, rows).ok());
  EXPECT_FALSE(select_squares({}, {.queries = values, .keys = values, .n_tokens = 7, .head_dim = 1}).ok());
  EXPECT_FALSE(
      select_squares({}, {.queries = values, .keys = values, .n_tokens = 4, .n_heads = 1, .n_kv_heads = 2}).ok());
  const std::vector<float> sick(8, HUGE_VALF);
  EXPECT_FALSE(select_squares({}, {.queries = sick, .keys = values, .n_tokens = 8, .head_dim = 1}).ok());
}

}  // namespace
}  // namespace ebb
