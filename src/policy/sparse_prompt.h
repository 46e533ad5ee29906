// SparsePrompt: what of the cache a prompt's rows need not look at, as a person says it: "tri_shape:start=128,recent=1920".
//
//   tri_shape    a row looks at the first tokens, and from `recent` tokens before its chunk on; chunks begin at multiples of `chunk`
//   xattention   a block of rows looks at the first block, at its own, and at those that make up `threshold` of its attention, by the
//                sums of every `stride`-th antidiagonal, in each head
//   dense tail   rows of the last chunk (of xattention: block), and of those behind which fewer than `tail` tokens come, look at
//                everything
//
// OpenVINO GenAI's schemes (policy/sparse_prefill.h) by position and not by pass, so that how a prompt is cut into steps says
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
  // tri_shape: tokens that look at the same; 0: it is not that.
  std::int32_t chunk = 0;
  std::int32_t start_tokens = 0;
  std::int32_t recent_tokens = 0;
  // xattention: the share of its attention that a block of rows keeps; 0: it is not that.
  double threshold = 0.0;
  std::int32_t stride = 0;
  // A prompt's last tokens that look at everything, whole chunks or blocks of them.
  std::int32_t tail_tokens = 0;

  // From "none", or "NAME" or "NAME:parameter=value,..." of sparse_schemes(). kNotFound names what there is, kInvalidArgument the
  // parameters.
  static Result<SparsePrompt> parse(std::string_view text);
  // As parse() takes it.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool is_sparse() const { return chunk > 0 || threshold > 0.0; }
  // Whether it goes with blocks of so many tokens.
  [[nodiscard]] Status check_grain(std::int32_t grain) const;
  // Where the rows of a prompt that ends at n_tokens begin to look at everything, with blocks of so many tokens.
  [[nodiscard]] std::int32_t find_tail(std::int32_t n_tokens, std::int32_t grain) const;

  friend bool operator==(const SparsePrompt&, const SparsePrompt&) = default;
};

struct SparseScheme {
  std::string_view name;
  std::span<const Parameter> parameters;
};

// All there are, for help.
[[nodiscard]] std::span<const SparseScheme> sparse_schemes();

}  // namespace ebb
