// SparsePrompt: what of the cache a prompt's rows need not look at, as a person says it: "tri_shape:start=128,recent=1920".
//
//   tri_shape    a row looks at the first tokens, and from `recent` tokens before its chunk on; chunks begin at multiples of `chunk`
//   dense tail   rows of the last chunk, and of those behind which fewer than `tail` tokens come, look at everything
//
// OpenVINO GenAI's scheme (policy/sparse_prefill.h) by position and not by pass, so that how a prompt is cut into steps says
// nothing of what is seen. Nothing is freed: it spares the reading. Thread rule: a value; pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "policy/parameters.h"

namespace ebb {

struct SparsePrompt {
  // Tokens that look at the same; 0: every row looks at everything.
  std::int32_t chunk = 0;
  std::int32_t start_tokens = 0;
  std::int32_t recent_tokens = 0;
  // A prompt's last tokens that look at everything, whole chunks of them.
  std::int32_t tail_tokens = 0;

  // From "none", "tri_shape" or "tri_shape:parameter=value,...". kNotFound names what there is, kInvalidArgument the parameters.
  static Result<SparsePrompt> parse(std::string_view text);
  [[nodiscard]] bool is_sparse() const { return chunk > 0; }
  // Whether it goes with blocks of so many tokens.
  [[nodiscard]] Status check_grain(std::int32_t grain) const;
  // Where the rows of a prompt that ends at n_tokens begin to look at everything.
  [[nodiscard]] std::int32_t find_tail(std::int32_t n_tokens) const;

  friend bool operator==(const SparsePrompt&, const SparsePrompt&) = default;
};

// Of tri_shape, for help.
[[nodiscard]] std::span<const Parameter> tri_shape_parameters();

}  // namespace ebb
