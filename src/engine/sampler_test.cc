#include "engine/sampler.h"

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "chat/call_grammar.h"
#include "chat/reply_parser.h"
#include "gtest/gtest.h"
#include "text/toy_vocabulary.h"

namespace ebb::sampler_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int32_t kEnd = 259;  // <|im_end|> of the toy vocabulary

class SamplerTest : public testing::Test {
 protected:
  [[nodiscard]] Sampler make(const SamplingOptions& options) const {
    return Sampler::create(*vocabulary_, options).value();
  }
  [[nodiscard]] std::vector<float> random_logits() {
    std::normal_distribution<float> normal(0.0F, 3.0F);
    std::vector<float> logits(static_cast<std::size_t>(vocabulary_->n_tokens()));
    for (float& logit : logits) logit = normal(random_);
    return logits;
  }
  [[nodiscard]] std::vector<float> flat_logits() const {
    return std::vector<float>(static_cast<std::size_t>(vocabulary_->n_tokens()), 0.0F);
  }
  // The text of up to n_tokens drawn from random logits; stops at the end of generation.
  std::string generate(Sampler& sampler, int n_tokens) {
    std::string text;
    for (int i = 0; i < n_tokens; ++i) {
      const auto token = sampler.sample(random_logits()).value();
      if (!token) return text + "|none";
      EXPECT_TRUE(sampler.accept(*token).ok());
      if (vocabulary_->is_end_of_generation(*token)) return text + "|end";
      text += vocabulary_->piece(*token).value();
    }
    return text;
  }

  ToyFile file_{toy_bpe({.words = {"12", "3a", "word"}}).bytes()};
  std::unique_ptr<Vocabulary> vocabulary_ = Vocabulary::load(file_.path()).value();
  std::mt19937 random_{5};
};

TEST_F(SamplerTest, is_greedy_at_temperature_zero_with_ties_to_the_lowest_id) {
  // A bias of nothing takes the way of those that change something.
  for (const std::vector<LogitBias>& biases : {std::vector<LogitBias>(), {{.token = Token(5), .bias = 0.0F}}}) {
    Sampler sampler = make({.temperature = 0.0F, .logit_bias = biases});
    for (int round = 0; round < 100; ++round) {
      std::vector<float> logits = random_logits();
      const auto best = std::max_element(logits.begin(), logits.end());
      EXPECT_EQ(sampler.sample(logits).value(), Token(static_cast<std::int32_t>(best - logits.begin())));
    }
    std::vector<float> tied = flat_logits();
    tied[200] = tied[77] = tied[90] = 1.0F;
    EXPECT_EQ(sampler.sample(tied).value(), Token(77));
    for (std::size_t id = 0; id < tied.size(); ++id) {
      std::vector<float> sick = tied;
      sick[id] = id % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
      EXPECT_FALSE(sampler.sample(sick).ok()) << id;
    }
  }
}

TEST_F(SamplerTest, draws_the_same_tokens_for_the_same_seed) {
  const SamplingOptions options{.temperature = 1.5F, .top_k = 0, .top_p = 1.0F, .min_p = 0.0F, .seed = 42};
  std::vector<std::vector<float>> steps;
  for (int i = 0; i < 50; ++i) steps.push_back(random_logits());
  const auto run = [&](Sampler& sampler) {
    std::vector<std::int32_t> tokens;
    for (const auto& logits : steps) {
      const Token token = *sampler.sample(logits).value();
      EXPECT_TRUE(sampler.accept(token).ok());
      tokens.push_back(token.value());
    }
    return tokens;
  };
  Sampler first = make(options);
  Sampler second = make(options);
  const auto tokens = run(first);
  EXPECT_EQ(run(second), tokens);
  EXPECT_NE(run(second), tokens);  // goes on where it was

  SamplingOptions other = options;
  other.seed = 43;
  Sampler third = make(other);
  EXPECT_NE(run(third), tokens);
}

TEST_F(SamplerTest, the_seed_that_libllama_takes_for_none_is_one_too) {
  const std::uint32_t last = std::numeric_limits<std::uint32_t>::max();
  Sampler a = make({.temperature = 5.0F, .top_k = 0, .seed = last});
  Sampler b = make({.temperature = 5.0F, .top_k = 0, .seed = last});
  for (int i = 0; i < 20; ++i) {
    const auto logits = random_logits();
    EXPECT_EQ(a.sample(logits).value(), b.sample(logits).value());
  }
}

TEST_F(SamplerTest, draws_in_proportion_to_the_probabilities) {
  Sampler sampler = make({.temperature = 1.0F, .top_k = 0, .top_p = 1.0F, .min_p = 0.0F, .seed = 1});
  std::vector<float> logits(flat_logits().size(), -kInfinity);
  logits[10] = std::log(0.7F);
  logits[20] = std::log(0.3F);
  int n_first = 0;
  for (int i = 0; i < 10000; ++i) n_first += *sampler.sample(logits).value() == Token(10);
  EXPECT_NEAR(n_first, 7000, 200);
}

TEST_F(SamplerTest, cuts_off_unlikely_tokens) {
  std::vector<float> logits = flat_logits();
  logits[1] = 9.0F;
  logits[2] = 8.9F;
  logits[3] = 7.0F;
  const auto drawn = [&](const SamplingOptions& options) {
    Sampler sampler = make(options);
    std::map<std::int32_t, int> counts;
    for (int i = 0; i < 2000; ++i) ++counts[sampler.sample(logits).value()->value()];
    return counts;
  };
  const SamplingOptions all{
      .temperature = 3.0F, .top_k = 0, .top_p = 1.0F, .min_p = 0.0F, .typical_p = 1.0F, .seed = 3};
  EXPECT_GT(drawn(all).size(), 10U);
  SamplingOptions cut = all;
  cut.top_k = 2;
  EXPECT_EQ(drawn(cut).size(), 2U);
  cut = all;
  cut.top_p = 0.6F;
  EXPECT_EQ(drawn(cut).size(), 2U);
  cut = all;
  cut.min_p = 0.1F;
  EXPECT_EQ(drawn(cut).size(), 3U);
  cut = all;
  cut.typical_p = 0.3F;
  EXPECT_LE(drawn(cut).size(), 3U);
}

TEST_F(SamplerTest, adds_bias_and_forbids_tokens) {
  std::vector<float> logits = flat_logits();
  logits[5] = 2.0F;
  Sampler sampler = make({.temperature = 0.0F, .logit_bias = {{Token(9), 3.0F}, {Token(5), 0.5F}}});
  EXPECT_EQ(sampler.sample(logits).value(), Token(9));
  Sampler forbidden = make({.temperature = 0.0F, .logit_bias = {{Token(5), -kInfinity}}});
  EXPECT_EQ(forbidden.sample(logits).value(), Token(0));
}

TEST_F(SamplerTest, penalises_what_was_accepted_lately) {
  std::vector<float> logits = flat_logits();
  logits[5] = 2.0F;
  logits[6] = 1.9F;
  Sampler sampler = make({.temperature = 0.0F, .penalty_last_n = 2, .penalty_repeat = 1.2F});
  EXPECT_EQ(sampler.sample(logits).value(), Token(5));
  ASSERT_TRUE(sampler.accept(Token(5)).ok());
  EXPECT_EQ(sampler.sample(logits).value(), Token(6));
  ASSERT_TRUE(sampler.accept(Token(100)).ok());
  ASSERT_TRUE(sampler.accept(Token(101)).ok());  // 5 is out of sight
  EXPECT_EQ(sampler.sample(logits).value(), Token(5));

  Sampler presence = make({.temperature = 0.0F, .penalty_presence = 0.5F});
  ASSERT_TRUE(presence.accept_prompt(std::vector<Token>{Token(5)}).ok());
  EXPECT_EQ(presence.sample(logits).value(), Token(6));
  Sampler fresh = make({.temperature = 0.0F, .penalty_presence = 0.5F});
  EXPECT_EQ(fresh.sample(logits).value(), Token(5));
}

TEST_F(SamplerTest, keeps_to_a_grammar_of_digits) {
  for (const SamplingOptions& base :
       {SamplingOptions{.temperature = 0.0F}, SamplingOptions{.temperature = 3.0F, .seed = 1},
        SamplingOptions{.temperature = 3.0F, .top_k = 0, .top_p = 1.0F, .seed = 2},
        SamplingOptions{.temperature = 3.0F, .top_k = 2, .typical_p = 0.5F, .seed = 3}}) {
    SamplingOptions options = base;
    options.grammar = "root ::= [0-9]+";
    options.logit_bias = {{Token(kEnd), -kInfinity}};
    Sampler sampler = make(options);
    const std::string text = generate(sampler, 40);
    EXPECT_GE(text.size(), 40U);
    EXPECT_EQ(text.find_first_not_of("0123456789"), std::string::npos) << text;
  }
}

TEST_F(SamplerTest, draws_the_token_that_masking_the_whole_vocabulary_would_draw) {
  // With top_k, only the likeliest tokens are shown to the grammar; that must not change the choice.
  SamplingOptions options{.temperature = 2.0F, .top_k = 3, .top_p = 1.0F, .min_p = 0.0F, .seed = 8};
  Sampler masked = make(options);
  options.grammar = "root ::= [0-9]*";
  Sampler sampler = make(options);
  for (int i = 0; i < 200; ++i) {
    std::vector<float> logits = random_logits();
    logits[kEnd] = -kInfinity;
    const auto token = sampler.sample(logits).value();
    for (std::int32_t id = 0; id < vocabulary_->n_tokens(); ++id) {
      const std::string piece = vocabulary_->piece(Token(id)).value();
      const bool digits = !piece.empty() && piece.find_first_not_of("0123456789") == std::string::npos;
      if (!digits) logits[static_cast<std::size_t>(id)] = -kInfinity;
    }
    EXPECT_EQ(masked.sample(logits).value(), token);
  }
}

TEST_F(SamplerTest, ends_when_the_grammar_is_complete) {
  Sampler sampler = make({.temperature = 1.0F, .seed = 1, .grammar = "root ::= \"hello\""});
  EXPECT_EQ(generate(sampler, 40), "hello|end");
  // Where no token may follow and none may end the text, there is none.
  Sampler endless = make(
      {.temperature = 1.0F, .seed = 1, .logit_bias = {{Token(kEnd), -kInfinity}}, .grammar = "root ::= \"hello\""});
  EXPECT_EQ(generate(endless, 40), "hello|none");
}

TEST_F(SamplerTest, refuses_tokens_that_the_grammar_does_not_allow_and_goes_on) {
  Sampler sampler = make({.temperature = 0.0F, .grammar = "root ::= \"ab\" [0-9]"});
  EXPECT_EQ(sampler.accept(Token('x')).code(), Code::kInvalidArgument);
  EXPECT_EQ(sampler.accept(Token(kEnd)).code(), Code::kInvalidArgument);
  EXPECT_TRUE(sampler.accept(Token('a')).ok());
  EXPECT_EQ(sampler.accept(Token('a')).code(), Code::kInvalidArgument);
  EXPECT_TRUE(sampler.accept(Token('b')).ok());
  EXPECT_TRUE(sampler.accept(Token('7')).ok());
  EXPECT_EQ(sampler.accept(Token('7')).code(), Code::kInvalidArgument);
  EXPECT_EQ(sampler.sample(flat_logits()).value(), Token(kEnd));
  EXPECT_TRUE(sampler.accept(Token(kEnd)).ok());
}

TEST_F(SamplerTest, survives_any_order_of_tokens_under_a_grammar) {
  // All bytes, also those that are no UTF-8, in any order; and repetitions of what may be empty.
  for (const std::string grammar :
       {"root ::= ([^a-m] | \"\xE2\x82\xAC\" | <|im_start|>)*", "root ::= (x)*\nx ::= [^a-m] |"}) {
    const SamplingOptions options = {.temperature = 0.0F, .grammar = grammar};
    Sampler sampler = make(options);
    int n_accepted = 0;
    for (int i = 0; i < 20000; ++i) {
      const Token token(static_cast<std::int32_t>(random_() % static_cast<unsigned>(vocabulary_->n_tokens())));
      n_accepted += sampler.accept(token).ok();
      if (i % 100 == 0) {
        ASSERT_TRUE(sampler.sample(random_logits()).ok());
      }
      if (i % 1000 == 0) sampler = make(options);
    }
    EXPECT_GT(n_accepted, 1000) << grammar;
  }
}

TEST_F(SamplerTest, matches_control_tokens_only_where_they_are_marks_or_named) {
  const Token start(258);
  const auto allows = [&](const std::string& grammar, std::vector<Token> marks) {
    Sampler sampler = make({.temperature = 0.0F, .grammar = grammar, .marks = std::move(marks)});
    std::vector<float> logits = flat_logits();
    logits[start.index()] = 9.0F;
    return sampler.sample(logits).value() == start && sampler.accept(start).ok();
  };
  EXPECT_FALSE(allows("root ::= [^a]*", {}));
  EXPECT_FALSE(allows("root ::= \"<|im_start|>\"", {}));
  EXPECT_TRUE(allows("root ::= \"<|im_start|>\"", {start}));
  EXPECT_TRUE(allows("root ::= <|im_start|>", {}));
  EXPECT_TRUE(allows("root ::= <[258]>", {}));
  EXPECT_FALSE(allows("root ::= !<|im_end|>", {}));
}

// Wherever the borders between tokens lie: up to the mark all is free, from it on all is a call.
TEST_F(SamplerTest, keeps_to_calls_from_the_mark_on_wherever_tokens_begin_and_end) {
  const std::vector<std::string> words = {
      "a<tool",       "_call>", "<tool_",          "call>\xC4\x8A", "l>\xC4\x8A{\"",        "<tool_call>",
      "<tool_call>x", "name\"", ":\xC4\xA0\"ls\"", "<tool_cal",     ",\xC4\xA0\"arguments", "{}}\xC4\x8A</"};
  const ToyFile file(toy_bpe({.words = words}).bytes());
  const auto vocabulary = Vocabulary::load(file.path()).value();
  const Tool ls{.name = "ls"};
  const std::string grammar = call_grammar(hermes_calls(), {.tools = {ls}, .required = false})->grammar;
  int n_calls = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    Sampler sampler = Sampler::create(*vocabulary, {.temperature = 1.0F, .seed = seed, .grammar = grammar}).value();
    std::string text;
    bool has_ended = false;
    for (int i = 0; i < 80 && !has_ended; ++i) {
      std::vector<float> logits(static_cast<std::size_t>(vocabulary->n_tokens()), -9.0F);
      for (std::size_t id = 261; id < logits.size(); ++id) logits[id] = 3.0F;
      logits[kEnd] = i < 8 ? -99.0F : 4.0F;
      const auto token = sampler.sample(logits).value();
      ASSERT_TRUE(token && sampler.accept(*token).ok());
      text += vocabulary->piece(*token).value();
      has_ended = vocabulary->is_end_of_generation(*token);
    }
    const ParsedReply reply = parse_reply({.calls = &hermes_calls(), .tools = {ls}}, text);
    EXPECT_EQ(text.find("<tool_call>x"), std::string::npos) << text;
    EXPECT_EQ(reply.calls.empty(), text.find("<tool_call>") == std::string::npos || !has_ended) << text;
    for (const ReplyCall& one : reply.calls) EXPECT_TRUE(one.name == "ls" && (one.complete || !has_ended)) << text;
    n_calls += static_cast<int>(reply.calls.size());
  }
  EXPECT_GT(n_calls, 10);
}

TEST_F(SamplerTest, lets_nothing_hide_behind_a_nul_byte) {
  // BPE writes the byte 0 as this letter.
  const ToyFile file(toy_bpe({.words = {"7\xC4\x80x"}}).bytes());
  const auto vocabulary = Vocabulary::load(file.path()).value();
  const Token hiding(261);
  ASSERT_EQ(vocabulary->piece(hiding).value(), std::string("7\0x", 3));
  Sampler sampler = Sampler::create(*vocabulary, {.temperature = 0.0F, .grammar = "root ::= [0-9]"}).value();
  std::vector<float> logits(static_cast<std::size_t>(vocabulary->n_tokens()), 0.0F);
  logits[hiding.index()] = 9.0F;
  EXPECT_EQ(sampler.sample(logits).value(), Token('0'));
  EXPECT_EQ(sampler.accept(hiding).code(), Code::kInvalidArgument);
}

TEST_F(SamplerTest, refuses_broken_grammars_without_printing) {
  testing::internal::CaptureStderr();
  for (const std::string grammar :
       {"root ::= [", "root ::= x", "nonsense", "root ::= root \"a\" | \"b\"", "root ::= \"a\"{3,1}"}) {
    EXPECT_EQ(Sampler::create(*vocabulary_, {.grammar = grammar}).status().code(), Code::kInvalidArgument) << grammar;
  }
  EXPECT_EQ(Sampler::create(*vocabulary_, {.grammar = "a ::= \"x\"", .grammar_root = "b"}).status().code(),
            Code::kInvalidArgument);
  EXPECT_TRUE(Sampler::create(*vocabulary_, {.grammar = "a ::= \"x\"", .grammar_root = "a"}).ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(SamplerTest, refuses_logits_that_are_no_logits) {
  Sampler sampler = make({.seed = 1});
  const auto code_with = [&](float sick) {
    std::vector<float> logits = flat_logits();
    logits[123] = sick;
    return sampler.sample(logits).status();
  };
  EXPECT_EQ(code_with(std::numeric_limits<float>::quiet_NaN()).code(), Code::kInvalidArgument);
  EXPECT_NE(code_with(kInfinity).message().find("token 123"), std::string::npos);
  EXPECT_TRUE(code_with(-kInfinity).ok());
  EXPECT_EQ(sampler.sample(std::vector<float>(3)).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(sampler.sample({}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(sampler.sample(std::vector<float>(flat_logits().size(), -kInfinity)).status().code(),
            Code::kInvalidArgument);
}

TEST_F(SamplerTest, survives_extreme_logits_and_options) {
  const float huge = std::numeric_limits<float>::max();
  for (const float temperature : {0.0F, 1e-38F, 1.0F, 100.0F}) {
    for (const float typical_p : {0.0F, 0.5F, 1.0F}) {
      for (const float top_p : {0.0F, 1.0F}) {
        Sampler sampler = make({.temperature = temperature,
                                .top_k = 0,
                                .top_p = top_p,
                                .min_p = 1.0F - top_p,
                                .typical_p = typical_p,
                                .penalty_repeat = 0.01F,
                                .penalty_frequency = -100.0F,
                                .seed = 1,
                                .logit_bias = {{Token(3), 1e6F}}});
        ASSERT_TRUE(sampler.accept(Token(7)).ok());
        std::vector<float> logits = flat_logits();
        logits[7] = huge;
        logits[8] = -huge;
        logits[9] = -200.0F;
        const auto token = sampler.sample(logits);
        ASSERT_TRUE(token.ok() && token->has_value());
        EXPECT_EQ(**token, Token(7));
      }
    }
  }
}

TEST_F(SamplerTest, checks_its_options) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const SamplingOptions& wrong : {
           SamplingOptions{.temperature = -0.1F},
           SamplingOptions{.temperature = nan},
           SamplingOptions{.temperature = kInfinity},
           SamplingOptions{.top_k = -1},
           SamplingOptions{.top_p = 1.01F},
           SamplingOptions{.top_p = nan},
           SamplingOptions{.min_p = -0.01F},
           SamplingOptions{.typical_p = 2.0F},
           SamplingOptions{.penalty_last_n = -1},
           SamplingOptions{.penalty_last_n = 1 << 30},
           SamplingOptions{.penalty_repeat = 0.0F},
           SamplingOptions{.penalty_frequency = nan},
           SamplingOptions{.penalty_presence = kInfinity},
           SamplingOptions{.logit_bias = {{Token(1), nan}}},
           SamplingOptions{.logit_bias = {{Token(1), kInfinity}}},
       }) {
    EXPECT_EQ(wrong.validate().code(), Code::kInvalidArgument);
    EXPECT_EQ(Sampler::create(*vocabulary_, wrong).status().code(), Code::kInvalidArgument);
  }
  EXPECT_TRUE(SamplingOptions{}.validate().ok());
  EXPECT_NE((SamplingOptions{.top_p = 1.5F}).validate().message().find("top_p is 1.5"), std::string::npos);
  EXPECT_EQ(Sampler::create(*vocabulary_, {.logit_bias = {{Token(100000), 1.0F}}}).status().code(),
            Code::kInvalidArgument);
  Sampler sampler = make({});
  EXPECT_EQ(sampler.accept(Token(-1)).code(), Code::kInvalidArgument);
  EXPECT_EQ(sampler.accept_prompt(std::vector<Token>{Token(1), Token(100000)}).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ebb::sampler_test
