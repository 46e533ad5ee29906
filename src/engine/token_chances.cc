#include "engine/token_chances.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace ebb {

TokenChances token_chances(std::span<const float> logits, Token token, std::int32_t n_likeliest) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  const double log_sum = largest + std::log(sum);
  // JSON has no infinity.
  const auto chance = [&](std::size_t id) {
    const double logprob = std::max<double>(std::numeric_limits<float>::lowest(), logits[id] - log_sum);
    return TokenChance{.token = Token(static_cast<std::int32_t>(id)), .logprob = static_cast<float>(logprob)};
  };
  TokenChances chances{.kept = chance(token.index())};
  std::vector<std::size_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), std::size_t{0});
  const std::size_t n = std::min(ids.size(), static_cast<std::size_t>(std::max(0, n_likeliest)));
  std::partial_sort(
      ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n), ids.end(),
      [&](std::size_t a, std::size_t b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); });
  for (std::size_t i = 0; i < n; ++i) chances.likeliest.push_back(chance(ids[i]));
  return chances;
}

TokenChances certain_chances(Token token, std::int32_t n_likeliest) {
  TokenChances chances{.kept = {.token = token}, .is_of_draw = true};
  if (n_likeliest > 0) chances.likeliest.push_back(chances.kept);
  return chances;
}

}  // namespace ebb
