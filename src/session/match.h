// match: what of a whole prompt a session holds already. Pure functions on tokens; they move nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/ids.h"

namespace ebb {

// How many first tokens of `prompt` are those that the session computed, then those that wait in it.
[[nodiscard]] inline std::int32_t count_common(std::span<const Token> computed, std::span<const Token> waiting,
                                               std::span<const Token> prompt) {
  const auto n_computed = std::ranges::mismatch(computed, prompt).in1 - computed.begin();
  if (n_computed < std::ssize(computed)) return static_cast<std::int32_t>(n_computed);
  const std::span<const Token> rest = prompt.subspan(static_cast<std::size_t>(n_computed));
  return static_cast<std::int32_t>(n_computed + (std::ranges::mismatch(waiting, rest).in1 - waiting.begin()));
}

}  // namespace ebb
