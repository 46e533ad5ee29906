// Token chances: how likely the model found a token, and which it found likelier.
//
// Log-softmax of the raw logits: before bias, penalties, grammar and temperature. Thread rule: a function of its arguments.
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
};

// Of logits [n_tokens of the vocabulary] without NaN, some of them finite. `token` is one of the vocabulary.
[[nodiscard]] TokenChances token_chances(std::span<const float> logits, Token token, std::int32_t n_likeliest);

}  // namespace ebb
