#include "engine/token_chances.h"

#include <array>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace ebb {
namespace {

TEST(TokenChances, are_the_logarithms_of_the_softmax) {
  const std::array<float, 4> logits = {std::log(1.0F), std::log(2.0F), std::log(4.0F), std::log(1.0F)};
  const TokenChances chances = token_chances(logits, Token(1), 3);
  EXPECT_EQ(chances.kept.token, Token(1));
  EXPECT_NEAR(chances.kept.logprob, std::log(0.25), 1e-6);
  ASSERT_EQ(chances.likeliest.size(), 3U);
  EXPECT_EQ(chances.likeliest[0].token, Token(2));
  EXPECT_NEAR(chances.likeliest[0].logprob, std::log(0.5), 1e-6);
  EXPECT_EQ(chances.likeliest[1].token, Token(1));
  EXPECT_EQ(chances.likeliest[2].token, Token(0));
}

TEST(TokenChances, stay_finite_where_the_model_leaves_no_chance) {
  const std::array<float, 2> logits = {1e30F, -std::numeric_limits<float>::infinity()};
  const TokenChances chances = token_chances(logits, Token(1), 5);
  EXPECT_EQ(chances.kept.logprob, std::numeric_limits<float>::lowest());
  EXPECT_EQ(chances.likeliest.size(), 2U);
  EXPECT_EQ(chances.likeliest[0].logprob, 0.0F);
  EXPECT_TRUE(token_chances(logits, Token(0), 0).likeliest.empty());
}

}  // namespace
}  // namespace ebb
