// Sight: what the rows of a sparse prompt leave out of what is visible to them.
//
//   where    positions whose rows leave something out, from 0; all others look at everything
//   hidden   by position, of a row in the chunk [c, c + chunk), where chunks begin at multiples of `chunk`: [n_start, c - n_recent)
//   squares  by what queries and keys say (model/square_choice.h), of a block of rows that are computed in one step
//
// What is hidden from a row depends on its position, never on how the prompt was cut into steps, so that it can be part of names;
// a step therefore has rows of one chunk. What a block of rows looks at of squares depends on all its tokens: these are part of
// what each of its rows saw, and rows that are cut off from the others are never taken for rows of another block.
//
// It knows no attention and no policy. Thread rule: a value.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>

#include "base/hash.h"
#include "base/ids.h"
#include "base/span.h"

namespace ebb {

// How blocks of rows choose the blocks of keys that they look at.
struct Squares {
  // The share of its attention that a block of rows keeps; 0: nothing is chosen.
  double threshold = 0.0;
  // Rows and keys of a small square; divides the block and 16.
  std::int32_t stride = 8;

  [[nodiscard]] bool is_set() const { return threshold > 0.0; }
};

struct Sight {
  Span where = {Position(0), Position(0)};
  // 0: no positions are hidden. Sizes are multiples of the block.
  std::int32_t chunk = 0;
  std::int32_t n_start = 0;
  std::int32_t n_recent = 0;
  Squares squares;
  // Tokens of a block; where there are squares.
  std::int32_t block_size = 0;

  [[nodiscard]] Span hidden(Position row) const {
    const Span nothing = {Position(0), Position(0)};
    if (chunk == 0 || !where.contains(row)) return nothing;
    const Span hidden = {Position(n_start), Position(row.value() / chunk * chunk - n_recent)};
    return hidden.begin < hidden.end ? hidden : nothing;
  }

  // Whether rows there are of squares, if their block is computed in one step.
  [[nodiscard]] bool has_squares(Position row) const { return squares.is_set() && where.contains(row); }

  // What rows of one block that are computed now look at, where `visible` is visible; the same where they leave nothing out.
  // `tokens` are the rows'.
  [[nodiscard]] Hash128 seen(const Hash128& visible, Position row, std::span<const Token> tokens) const {
    if (has_squares(row) && std::cmp_equal(tokens.size(), block_size) && row.value() % block_size == 0) {
      return Hasher()
          .add(visible)
          .add_text("squares")
          .add(std::bit_cast<std::uint64_t>(squares.threshold))
          .add(static_cast<std::uint64_t>(squares.stride))
          .add_bytes(std::as_bytes(tokens))
          .finish();
    }
    const Span span = hidden(row);
    if (span.empty()) return visible;
    return Hasher().add(visible).add_text("hidden").add(bits(span.begin)).add(bits(span.end)).finish();
  }

  // How many of n_rows from `row` on one step takes: such as leave out the same, or whole blocks where it takes any.
  [[nodiscard]] std::int32_t fit(Position row, std::int32_t n_rows) const {
    if (!where.contains(row)) return n_rows;
    if (squares.is_set()) {
      const std::int32_t end = (row.value() + n_rows) / block_size * block_size;
      return row + n_rows < where.end && end > row.value() ? end - row.value() : n_rows;
    }
    return chunk == 0 ? n_rows : std::min({n_rows, chunk - row.value() % chunk, where.end - row});
  }

 private:
  static std::uint64_t bits(Position position) { return static_cast<std::uint64_t>(position.value()); }
};

}  // namespace ebb
