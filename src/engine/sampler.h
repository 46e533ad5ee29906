// Sampler: chooses the next token of one sequence from the model's logits.
//
// It runs libllama's samplers, and our grammar matcher among them, in this order: logit bias, penalties, grammar, top-k,
// typical-p, top-p, min-p, temperature, draw. It does not know the model, the session or the text. It promises: the same
// options, seed, logits and accepted tokens give the same tokens on every run; temperature 0 is the argmax after bias,
// penalties and grammar, ties to the lowest id; sick logits and sick grammars are a Status, never an abort.
//
// Thread rule: one thread at a time; different samplers of the same Vocabulary run side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "text/vocabulary.h"

namespace ebb {

struct LogitBias {
  Token token;
  // Added to the token's logit; -infinity forbids the token.
  float bias = 0.0F;
};

struct SamplingOptions {
  // Of penalty_last_n; the sampler keeps that many tokens.
  static constexpr std::int32_t kMaxPenaltyTokens = 1 << 20;

  float temperature = 0.8F;  // 0: greedy
  std::int32_t top_k = 40;   // 0: all
  float top_p = 0.95F;       // 1: off
  float min_p = 0.05F;       // 0: off
  float typical_p = 1.0F;    // 1: off
  // How many of the last accepted tokens the penalties look at; 0 switches the penalties off.
  std::int32_t penalty_last_n = 64;
  float penalty_repeat = 1.0F;                       // 1: off
  float penalty_frequency = 0.0F;                    // 0: off
  float penalty_presence = 0.0F;                     // 0: off
  std::optional<std::uint32_t> seed = std::nullopt;  // unset: a random one
  std::vector<LogitBias> logit_bias = {};
  // GBNF; empty: no grammar.
  std::string grammar = {};
  std::string grammar_root = "root";
  // Control tokens that the grammar may match by their text. It matches no others, but for those that it names.
  std::vector<Token> marks = {};

  // kInvalidArgument naming the option, its value and its range. Tokens and grammar are checked by Sampler::create.
  [[nodiscard]] Status validate() const;
};

class Sampler {
 public:
  // The vocabulary must outlive the sampler.
  [[nodiscard]] static Result<Sampler> create(const Vocabulary& vocabulary, const SamplingOptions& options);
  ~Sampler();
  Sampler(Sampler&& other) noexcept;
  Sampler& operator=(Sampler&& other) noexcept;

  // The next token for logits [n_tokens of the vocabulary]; nothing when grammar and bias leave no token, which ends
  // the generation. Does not change what was accepted: call accept with the token that is kept. -infinity is a
  // forbidden token; kInvalidArgument for a wrong count, NaN, +infinity, or logits that forbid everything by
  // themselves.
  [[nodiscard]] Result<std::optional<Token>> sample(std::span<const float> logits);

  // Adds a token to what penalties and grammar have seen. kInvalidArgument, and no change, for a token that is not of
  // the vocabulary or that the grammar does not allow here.
  [[nodiscard]] Status accept(Token token);
  // Adds tokens of the prompt to what penalties have seen; the grammar begins with the answer.
  [[nodiscard]] Status accept_prompt(std::span<const Token> tokens);

 private:
  struct State;
  explicit Sampler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ebb
