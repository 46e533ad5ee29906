// Token chances: how likely the model found a token, and which it found likelier.
//
// token_chances tells log-softmax of the raw logits: before bias, penalties, grammar and temperature. What was left of
// them for the draw, the Sampler knows (Sampler::drawn_chances). Thread rule: a function of its arguments.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace ebb {

struct TokenChance {
  Token token;
  float logprob = 0.0F;
};

struct TokenChances {
  TokenChance kept;
  // The likeliest, best first, ties to the lowest id.
  std::vector<TokenChance> likeliest = {};
  // The chances are those of the draw, not of the raw logits.
  bool is_of_draw = false;
};

// The chances by logits [n_tokens of the vocabulary] without NaN, some of them finite. `token` is one of the
// vocabulary.
[[nodiscard]] TokenChances token_chances(std::span<const float> logits, Token token, std::int32_t n_likeliest);

// The draw's chances where there was no draw to make: the token was the only one.
[[nodiscard]] TokenChances certain_chances(Token token, std::int32_t n_likeliest);

}  // namespace ebb
