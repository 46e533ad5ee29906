#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "engine/sampler.h"
#include "gtest/gtest.h"
#include "text/toy_vocabulary.h"

namespace ebb::sampler_steps_test {
namespace {

using enum SamplingStep;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int32_t kEnd = 259;  // <|im_end|> of the toy vocabulary

// All tokens are equally likely to be drawn, but for what a test switches on.
SamplingOptions open_options() { return {.temperature = 1.0F, .top_k = 0, .top_p = 1.0F, .min_p = 0.0F, .seed = 1}; }

class SamplerSteps : public testing::Test {
 protected:
  [[nodiscard]] Sampler make(const SamplingOptions& options) const {
    return Sampler::create(*vocabulary_, options).value();
  }
  [[nodiscard]] std::vector<float> flat_logits() const {
    return std::vector<float>(static_cast<std::size_t>(vocabulary_->n_tokens()), 0.0F);
  }
  // Tokens 1, 2, 3, ... have these logits; all others are impossible.
  [[nodiscard]] std::vector<float> few_logits(std::vector<float> given) const {
    std::vector<float> logits(flat_logits().size(), -kInfinity);
    std::ranges::copy(given, logits.begin() + 1);
    return logits;
  }
  [[nodiscard]] static std::set<std::int32_t> drawn(Sampler& sampler, const std::vector<float>& logits) {
    std::set<std::int32_t> tokens;
    for (int i = 0; i < 500; ++i) tokens.insert(sampler.sample(logits).value()->value());
    return tokens;
  }
  [[nodiscard]] std::set<std::int32_t> drawn(const SamplingOptions& options, const std::vector<float>& logits) const {
    Sampler sampler = make(options);
    return drawn(sampler, logits);
  }
  static void say(Sampler& sampler, const std::string& text) {
    for (const char byte : text) ASSERT_TRUE(sampler.accept(Token(static_cast<unsigned char>(byte))).ok());
  }

  ToyFile file_{toy_bpe({}).bytes()};
  std::unique_ptr<Vocabulary> vocabulary_ = Vocabulary::load(file_.path()).value();
  std::mt19937 random_{5};
};

using Drawn = std::set<std::int32_t>;

TEST_F(SamplerSteps, dry_lowers_what_goes_on_with_a_repetition_and_stops_at_a_breaker) {
  std::vector<float> logits = flat_logits();
  logits['d'] = 1.0F;
  const SamplingOptions options{.temperature = 0.0F, .dry = {.multiplier = 2.0F, .allowed_length = 2}};
  Sampler sampler = make(options);
  say(sampler, "abcd-bc");
  EXPECT_NE(sampler.sample(logits).value(), Token('d'));
  Sampler short_one = make(options);
  say(short_one, "abcd-c");  // as long as one token, which is allowed
  EXPECT_EQ(short_one.sample(logits).value(), Token('d'));
  Sampler broken = make(options);
  say(broken, "ab:cd-b:c");  // the colon is a breaker
  EXPECT_EQ(broken.sample(logits).value(), Token('d'));
  SamplingOptions without = options;
  without.dry.sequence_breakers = {"x"};
  Sampler unbroken = make(without);
  say(unbroken, "ab:cd-b:c");
  EXPECT_NE(unbroken.sample(logits).value(), Token('d'));
}

TEST_F(SamplerSteps, dry_sees_the_prompt_as_far_back_as_it_is_told) {
  std::vector<float> logits = flat_logits();
  logits['d'] = 1.0F;
  const auto goes_on = [&](std::int32_t n_tokens) {
    Sampler sampler = make({.temperature = 0.0F, .dry = {.multiplier = 2.0F, .penalty_last_n = n_tokens}});
    const std::vector<Token> prompt = {Token('b'), Token('c'), Token('d'), Token('-'), Token('b'), Token('c')};
    EXPECT_TRUE(sampler.accept_prompt(prompt).ok());
    return sampler.sample(logits).value() == Token('d');
  };
  EXPECT_FALSE(goes_on(6));
  EXPECT_TRUE(goes_on(4));
  EXPECT_TRUE(goes_on(0));
}

TEST_F(SamplerSteps, xtc_leaves_the_least_likely_of_the_tokens_above_its_threshold) {
  const std::vector<float> logits = few_logits({3.0F, 2.8F, 2.5F, -1.0F});
  SamplingOptions options = open_options();
  options.xtc = {.probability = 1.0F, .threshold = 0.1F};
  EXPECT_EQ(drawn(options, logits), (Drawn{3, 4}));
  options.xtc.threshold = 0.51F;
  EXPECT_EQ(drawn(options, logits), (Drawn{1, 2, 3, 4}));
  options.xtc = {.probability = 1.0F, .threshold = 0.0F};
  EXPECT_EQ(drawn(options, logits), (Drawn{4}));  // and none of the impossible ones
}

TEST_F(SamplerSteps, top_n_sigma_keeps_what_is_near_the_likeliest_by_the_spread_of_all) {
  std::vector<float> logits = flat_logits();
  logits[7] = 10.0F;
  logits[8] = 9.9F;
  SamplingOptions options = open_options();
  options.temperature = 50.0F;
  EXPECT_GT(drawn(options, logits).size(), 100U);
  options.top_n_sigma = 1.0F;
  EXPECT_EQ(drawn(options, logits), (Drawn{7, 8}));
}

TEST_F(SamplerSteps, the_temperature_moves_with_the_entropy_in_its_range) {
  SamplingOptions options = open_options();
  options.temperature = 3.0F;
  const std::vector<float> sure = few_logits({9.0F, 2.0F, 2.0F});
  EXPECT_EQ(drawn(options, sure).size(), 3U);
  options.dynatemp_range = 3.0F;
  EXPECT_EQ(drawn(options, sure), (Drawn{1}));
  EXPECT_EQ(drawn(options, few_logits({2.1F, 2.0F, 2.0F})).size(), 3U);
  // 0 is the middle of a range then, not greedy.
  options.temperature = 0.0F;
  EXPECT_EQ(drawn(options, few_logits({2.1F, 2.0F, 2.0F})).size(), 3U);
}

TEST_F(SamplerSteps, min_keep_holds_back_what_cuts) {
  const std::vector<float> logits = few_logits({5.0F, 3.0F, 1.0F});
  for (float SamplingOptions::*cut : {&SamplingOptions::top_p, &SamplingOptions::typical_p, &SamplingOptions::min_p}) {
    SamplingOptions options = open_options();
    options.temperature = 10.0F;
    options.*cut = cut == &SamplingOptions::min_p ? 1.0F : 0.01F;
    options.steps = {kTypicalP, kTopP, kMinP, kTemperature};
    EXPECT_EQ(drawn(options, logits).size(), 1U);
    options.min_keep = 2;
    EXPECT_EQ(drawn(options, logits).size(), 2U);
  }
}

TEST_F(SamplerSteps, run_in_the_order_that_they_are_given_in_and_no_others) {
  const std::vector<float> logits = few_logits({5.0F, 2.0F, 2.0F});
  SamplingOptions options = open_options();
  options.temperature = 10.0F;
  options.min_p = 0.1F;
  options.steps = {kMinP, kTemperature};
  EXPECT_EQ(drawn(options, logits), (Drawn{1}));
  options.steps = {kTemperature, kMinP};
  EXPECT_EQ(drawn(options, logits), (Drawn{1, 2, 3}));
  options.steps = {};
  options.temperature = 0.0F;  // of no step
  EXPECT_GT(drawn(options, few_logits({1.0F, 1.0F})).size(), 1U);
}

TEST_F(SamplerSteps, penalties_behind_other_steps_see_only_what_those_left) {
  const std::vector<float> logits = few_logits({5.0F, 4.9F, 4.8F});
  SamplingOptions options = open_options();
  options.top_k = 2;
  options.penalty_presence = 100.0F;
  for (const bool is_last : {false, true}) {
    options.steps = is_last ? std::vector{kTopK, kPenalties} : std::vector{kPenalties, kTopK};
    Sampler sampler = make(options);
    ASSERT_TRUE(sampler.accept(Token(1)).ok());
    EXPECT_EQ(drawn(sampler, logits), is_last ? (Drawn{2}) : (Drawn{2, 3}));
  }
}

TEST_F(SamplerSteps, nothing_but_penalties_matters_to_greedy_choice) {
  SamplingOptions options = open_options();
  options.temperature = 0.0F;
  options.xtc = {.probability = 1.0F, .threshold = 0.01F};
  options.typical_p = 0.1F;
  options.penalty_presence = 1.0F;
  options.steps = {kXtc, kTypicalP, kTemperature, kPenalties};
  Sampler sampler = make(options);
  const std::vector<float> logits = few_logits({5.0F, 4.5F, 4.4F});
  EXPECT_EQ(sampler.sample(logits).value(), Token(1));
  ASSERT_TRUE(sampler.accept(Token(1)).ok());
  EXPECT_EQ(sampler.sample(logits).value(), Token(2));
}

TEST_F(SamplerSteps, no_token_ends_the_text_where_ends_are_ignored) {
  std::vector<float> logits = flat_logits();
  logits[kEnd] = 50.0F;
  SamplingOptions options{.temperature = 0.0F};
  EXPECT_EQ(make(options).sample(logits).value(), Token(kEnd));
  options.ignore_eos = true;
  EXPECT_EQ(make(options).sample(logits).value(), Token(0));
  options.grammar = "root ::= \"a\"";
  Sampler sampler = make(options);
  ASSERT_TRUE(sampler.accept(Token('a')).ok());
  EXPECT_EQ(sampler.sample(logits).value(), std::nullopt);
}

TEST_F(SamplerSteps, mirostat_holds_the_surprise_and_takes_the_place_of_the_others) {
  const std::vector<float> logits = few_logits({3.0F, 2.0F, 1.0F, 0.0F});
  for (const std::int32_t version : {1, 2}) {
    SamplingOptions options = open_options();
    options.mirostat = {.version = version, .tau = 0.0F, .eta = 0.1F};
    EXPECT_EQ(drawn(options, logits), (Drawn{1})) << version;
    options.mirostat.tau = 8.0F;
    options.top_k = 1;
    EXPECT_EQ(drawn(options, logits), (Drawn{1, 2, 3, 4})) << version;
    options.temperature = 0.0F;
    EXPECT_EQ(drawn(options, logits), (Drawn{1})) << version;
  }
}

// Draws with everything at once, also in senseless orders and over logits at the edge of what a float holds.
TEST_F(SamplerSteps, draw_the_same_for_the_same_seed_and_never_what_is_forbidden) {
  constexpr float kHuge = std::numeric_limits<float>::max();
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SamplingOptions options{.temperature = seed % 5 == 0 ? 1e-38F : 0.5F,
                            .dynatemp_range = seed % 3 == 0 ? 0.5F : 0.0F,
                            .top_k = 5,
                            .typical_p = 0.7F,
                            .top_n_sigma = 1.0F,
                            .penalty_repeat = 0.01F,
                            .penalty_frequency = -100.0F,
                            .dry = {.multiplier = 100.0F, .base = 100.0F, .allowed_length = 0},
                            .xtc = {.probability = 0.9F, .threshold = 0.0F},
                            .mirostat = {.version = seed % 7 == 0 ? 1 + static_cast<int>(seed % 2) : 0},
                            .seed = seed,
                            .ignore_eos = true};
    std::ranges::shuffle(options.steps, random_);
    if (seed % 4 == 0) options.grammar = "root ::= [a-z]*";
    Sampler first = make(options);
    Sampler second = make(options);
    for (int i = 0; i < 60; ++i) {
      std::normal_distribution<float> normal(0.0F, 3.0F);
      std::vector<float> logits = flat_logits();
      for (float& logit : logits) logit = normal(random_);
      logits['a'] = i % 3 == 0 ? kHuge : 2.0F;
      logits['b'] = i % 4 == 0 ? -kHuge : -kInfinity;
      const std::optional<Token> token = first.sample(logits).value();
      ASSERT_TRUE(token);
      EXPECT_NE(*token, Token(kEnd));
      EXPECT_NE(logits[token->index()], -kInfinity);
      ASSERT_EQ(second.sample(logits).value(), token);
      ASSERT_TRUE(first.accept(*token).ok() && second.accept(*token).ok());
    }
  }
}

TEST_F(SamplerSteps, the_draw_tells_the_chances_that_the_steps_left) {
  const std::vector<float> logits = few_logits({std::log(0.6F), std::log(0.2F), std::log(0.2F), -9.0F});
  SamplingOptions options = open_options();
  options.top_k = 2;
  Sampler sampler = make(options);
  const Token token = *sampler.sample(logits).value();
  const TokenChances chances = sampler.drawn_chances(token, 5);
  EXPECT_TRUE(chances.is_of_draw);
  ASSERT_EQ(chances.likeliest.size(), 2U);
  EXPECT_EQ(chances.likeliest[0].token, Token(1));
  EXPECT_NEAR(std::exp(chances.likeliest[0].logprob), 0.75F, 1e-5F);
  EXPECT_NEAR(std::exp(chances.likeliest[1].logprob), 0.25F, 1e-5F);
  EXPECT_EQ(chances.kept.logprob, chances.likeliest[token == Token(1) ? 0 : 1].logprob);

  options.temperature = 0.0F;
  Sampler greedy = make(options);
  EXPECT_EQ(greedy.sample(logits).value(), Token(1));
  EXPECT_EQ(greedy.drawn_chances(Token(1), 5).kept.logprob, 0.0F);
  EXPECT_EQ(greedy.drawn_chances(Token(1), 5).likeliest.size(), 1U);
}

TEST_F(SamplerSteps, refuse_options_out_of_range) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const SamplingOptions& wrong : {
           SamplingOptions{.dynatemp_range = -1.0F},
           SamplingOptions{.dynatemp_exponent = nan},
           SamplingOptions{.top_n_sigma = kInfinity},
           SamplingOptions{.min_keep = -1},
           SamplingOptions{.dry = {.multiplier = -1.0F}},
           SamplingOptions{.dry = {.base = 0.9F}},
           SamplingOptions{.dry = {.allowed_length = -1}},
           SamplingOptions{.dry = {.penalty_last_n = 1 << 30}},
           SamplingOptions{.dry = {.sequence_breakers = {""}}},
           SamplingOptions{.dry = {.sequence_breakers = {std::string(41, 'x')}}},
           SamplingOptions{.dry = {.sequence_breakers = {std::string("a\0b", 3)}}},
           SamplingOptions{.dry = {.sequence_breakers = std::vector<std::string>(17, "x")}},
           SamplingOptions{.xtc = {.probability = 1.1F}},
           SamplingOptions{.xtc = {.threshold = nan}},
           SamplingOptions{.mirostat = {.version = 3}},
           SamplingOptions{.mirostat = {.tau = -1.0F}},
           SamplingOptions{.mirostat = {.eta = nan}},
           SamplingOptions{.steps = std::vector<SamplingStep>(33, kTopK)},
       }) {
    EXPECT_EQ(Sampler::create(*vocabulary_, wrong).status().code(), Code::kInvalidArgument);
  }
}

// A breaker may begin in the midst of a token and end in the midst of a character.
TEST_F(SamplerSteps, dry_takes_breakers_of_any_bytes) {
  for (const std::string breaker : {"\xE2\x82\xAC", "\x82", "\xFF\xFE", "<|im_end|>", " "}) {
    EXPECT_TRUE(Sampler::create(*vocabulary_, {.dry = {.multiplier = 1.0F, .sequence_breakers = {breaker}}}).ok());
  }
}

}  // namespace
}  // namespace ebb::sampler_steps_test
