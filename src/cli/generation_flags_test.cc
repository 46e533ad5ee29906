#include "cli/generation_flags.h"

#include <cmath>

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(LogitBiasFlag, names_a_token_a_sign_and_a_number) {
  const auto more = parse_logit_bias("15043+1.5");
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(more->token, Token(15043));
  EXPECT_EQ(more->bias, 1.5F);
  const auto less = parse_logit_bias("7-2");
  ASSERT_TRUE(less.ok());
  EXPECT_EQ(less->bias, -2.0F);
}

TEST(LogitBiasFlag, minus_infinity_forbids) {
  const auto never = parse_logit_bias("7-inf");
  ASSERT_TRUE(never.ok());
  EXPECT_TRUE(std::isinf(never->bias) && never->bias < 0);
}

TEST(LogitBiasFlag, anything_else_is_refused_with_an_example) {
  for (const char* text :
       {"", "15", "15+", "15 1", "+1", "x+1", "15+1x", "15+-1", "-15+1", "15+nan", "99999999999+1"}) {
    const auto bias = parse_logit_bias(text);
    EXPECT_EQ(bias.status().code(), Code::kInvalidArgument) << text;
    EXPECT_NE(bias.status().message().find("15043-inf"), std::string::npos);
  }
}

TEST(GenerationFlags, defaults_are_the_samplers_own) {
  const auto options = generation_options({});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->sampling.temperature, SamplingOptions{}.temperature);
  EXPECT_EQ(options->max_tokens, -1);
  EXPECT_FALSE(options->sampling.seed.has_value());
}

TEST(GenerationFlags, a_grammar_file_that_is_not_there_is_named) {
  GenerationFlags flags;
  flags.grammar_file = "/nowhere/grammar.gbnf";
  const auto options = generation_options(flags);
  EXPECT_EQ(options.status().code(), Code::kNotFound);
  EXPECT_NE(options.status().message().find("/nowhere/grammar.gbnf"), std::string::npos);
}

}  // namespace
}  // namespace ebb
