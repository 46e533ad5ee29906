// Sampler: chooses the next token of one sequence from the model's logits.
//
// It runs libllama's samplers, and our grammar matcher among them, in this order: logit bias, the penalties that the
// steps begin with, grammar, the other steps, draw. It does not know the model, the session or the text. It promises: the
// same options, seed, logits and accepted tokens give the same tokens on every run; temperature 0 is the argmax after
// bias, penalties and grammar, ties to the lowest id, whatever else the steps are; sick logits and sick grammars are a
// Status, never an abort.
//
// Thread rule: one thread at a time; different samplers of the same Vocabulary run side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/ids.h"
#include "base/status.h"
#include "engine/sampling_options.h"
#include "engine/token_chances.h"
#include "text/vocabulary.h"

namespace ebb {

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

  // How likely the draw of the last sample() found that token, and which it found likelier. Greedy choice is certain.
  [[nodiscard]] TokenChances drawn_chances(Token token, std::int32_t n_likeliest) const;

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
