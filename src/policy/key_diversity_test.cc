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
