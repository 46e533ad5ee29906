#include "policy/key_diversity.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

TEST(KeyDiversity, is_zero_where_nothing_is_alike_and_lower_the_more_is) {
  // Four tokens of blocks of two: the first three point one way, the last another.
  const std::vector<float> keys = {2, 0, 1, 0, 3, 0, 0, 1};
  const auto diversity = key_diversity(keys, {.n_tokens = 4, .head_dim = 2, .block_size = 2}).value();
  // Rows: token 0 is like 1 and 2, 1 like 0 and 2, 2 like 0 and 1, 3 like none.
  EXPECT_THAT(diversity, Pointwise(FloatNear(1e-5F), std::vector<float>{-1, -1, -2, 0, -1, -1, 0, 0}));
}

TEST(KeyDiversity, is_what_a_plain_computation_says) {
  constexpr int kTokens = 12;
  constexpr int kHeads = 3;
  constexpr int kDim = 5;
  constexpr int kBlock = 4;
  std::mt19937 random(11);
  std::vector<float> keys(kTokens * kHeads * kDim);
  for (float& key : keys) key = static_cast<float>(random() % 100) / 50.0F - 1.0F;
  const auto at = [&](int token, int head, int i) {
    return static_cast<double>(keys[static_cast<std::size_t>((token * kHeads + head) * kDim + i)]);
  };
  std::vector<float> expected(kTokens / kBlock * kTokens);
  for (int head = 0; head < kHeads; ++head) {
    double cosine[kTokens][kTokens];
    for (int a = 0; a < kTokens; ++a) {
      double mean = 0.0;
      for (int b = 0; b < kTokens; ++b) {
        double ab = 0.0;
        double aa = 1.19e-7;
        double bb = 1.19e-7;
        for (int i = 0; i < kDim; ++i) {
          ab += at(a, head, i) * at(b, head, i);
          aa += at(a, head, i) * at(a, head, i);
          bb += at(b, head, i) * at(b, head, i);
        }
        cosine[a][b] = a == b ? 0.0 : ab / std::sqrt(aa) / std::sqrt(bb);
        mean += cosine[a][b] / kTokens;
      }
      for (int b = 0; b < kTokens; ++b) {
        if (cosine[a][b] < mean) cosine[a][b] = 0.0;
        expected[static_cast<std::size_t>(a / kBlock * kTokens + b)] -= static_cast<float>(cosine[a][b] / kHeads);
      }
    }
  }
  const auto diversity =
      key_diversity(keys, {.n_tokens = kTokens, .n_kv_heads = kHeads, .head_dim = kDim, .block_size = kBlock});
  EXPECT_THAT(diversity.value(), Pointwise(FloatNear(1e-5F), expected));
}

// Means over rows of tokens, as the definition has them: of all pairs, no token with itself.
TEST(DirectionDiversity, is_what_a_plain_computation_over_tokens_says) {
  constexpr int kDim = 5;
  std::mt19937 random(12);
  for (const int n_tokens : {1, 3}) {
    constexpr int kRows = 9;
    constexpr int kHeads = 2;
    const int n_keys = kRows * n_tokens;
    std::vector<std::vector<std::vector<double>>> units(kHeads);  // [head][token][dim]
    for (auto& of_head : units) {
      for (int t = 0; t < n_keys; ++t) {
        std::vector<double> key;
        double square = 0.0;
        for (int d = 0; d < kDim; ++d) {
          key.push_back(static_cast<double>(random() % 1000) / 500.0 - 0.7);
          square += key.back() * key.back();
        }
        for (double& x : key) x /= std::sqrt(square);
        of_head.push_back(key);
      }
    }
    std::vector<float> directions;
    for (int row = 0; row < kRows; ++row) {
      for (const auto& of_head : units) {
        for (int d = 0; d < kDim; ++d) {
          double sum = 0.0;
          for (int t = row * n_tokens; t < (row + 1) * n_tokens; ++t) {
            sum += of_head[static_cast<std::size_t>(t)][static_cast<std::size_t>(d)];
          }
          directions.push_back(static_cast<float>(sum / n_tokens));
        }
      }
    }
    const std::vector<std::int32_t> rows = {0, 2, 3, 7};
    std::vector<double> expected(rows.size(), 0.0);
    for (const auto& of_head : units) {
      const auto cosine_of_rows = [&](int a, int b) {
        double sum = 0.0;
        for (int s = a * n_tokens; s < (a + 1) * n_tokens; ++s) {
          for (int t = b * n_tokens; t < (b + 1) * n_tokens; ++t) {
            for (std::size_t d = 0; s != t && d < kDim; ++d) {
              sum += of_head[static_cast<std::size_t>(s)][d] * of_head[static_cast<std::size_t>(t)][d];
            }
          }
        }
        return sum / (n_tokens * n_tokens);
      };
      for (std::size_t i = 0; i < rows.size(); ++i) {
        double mean = 0.0;
        for (int other = 0; other < kRows; ++other) mean += cosine_of_rows(rows[i], other) / kRows;
        for (const std::int32_t other : rows) {
          const double cosine = cosine_of_rows(rows[i], other);
          if (cosine >= mean) expected[i] -= cosine;
        }
      }
    }
    const auto diversity = direction_diversity(
        {.directions = directions, .n_heads = kHeads, .head_dim = kDim, .n_tokens = n_tokens}, rows);
    EXPECT_THAT(diversity, Pointwise(::testing::DoubleNear(3e-6), expected)) << n_tokens << " tokens a row";
  }
}

TEST(DirectionDiversity, knows_nothing_of_rows_that_were_not_read) {
  const std::vector<float> directions = {1, 0, 0, 0, 1, 0};
  const std::vector<std::int32_t> rows = {0, 1, 2};
  EXPECT_THAT(direction_diversity({.directions = directions, .head_dim = 2, .n_tokens = 4}, rows),
              Pointwise(::testing::DoubleNear(1e-9), std::vector<double>{-1.75, 0, -1.75}));
  EXPECT_THAT(direction_diversity({.n_heads = 2}, rows), Pointwise(::testing::DoubleEq(), std::vector<double>(3, 0.0)));
  EXPECT_TRUE(direction_diversity({.directions = directions, .head_dim = 2}, {}).empty());
}

TEST(KeyDiversity, takes_whole_blocks_of_finite_keys_only) {
  EXPECT_TRUE(key_diversity({}, {.head_dim = 2, .block_size = 2}).value().empty());
  const std::vector<float> keys(6);
  EXPECT_TRUE(key_diversity(keys, {.n_tokens = 3, .head_dim = 2}).ok()) << "keys of zeros are like nothing";
  EXPECT_FALSE(key_diversity(keys, {.n_tokens = 3, .head_dim = 2, .block_size = 2}).ok());
  EXPECT_FALSE(key_diversity(keys, {.n_tokens = 3, .head_dim = 3}).ok());
  EXPECT_FALSE(key_diversity(keys, {.n_tokens = 3, .n_kv_heads = 0, .head_dim = 2}).ok());
  EXPECT_FALSE(key_diversity(std::vector<float>{HUGE_VALF, 1}, {.n_tokens = 1, .head_dim = 2}).ok());
}

}  // namespace
}  // namespace ebb
