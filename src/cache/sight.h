// Sight: what the rows of a sparse prompt leave out of what is visible to them, by position.
//
//   where    positions whose rows leave something out, from 0; all others look at everything
//   hidden   of a row in the chunk [c, c + chunk), where chunks begin at multiples of `chunk`: [n_start, c - n_recent)
//
// What a row leaves out depends on its position, never on how the prompt was cut into steps, so that it can be part of names. A
// step therefore has rows of one chunk.
//
// It knows no attention and no policy. Thread rule: a value.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/hash.h"
#include "base/ids.h"
#include "base/span.h"

namespace ebb {

struct Sight {
  Span where = {Position(0), Position(0)};
  // 0: no positions are hidden. Sizes are multiples of the block.
  std::int32_t chunk = 0;
  std::int32_t n_start = 0;
  std::int32_t n_recent = 0;

  [[nodiscard]] Span hidden(Position row) const {
    const Span nothing = {Position(0), Position(0)};
    if (chunk == 0 || !where.contains(row)) return nothing;
    const Span hidden = {Position(n_start), Position(row.value() / chunk * chunk - n_recent)};
    return hidden.begin < hidden.end ? hidden : nothing;
  }

  // What a row looks at, where `visible` is visible; the same where it leaves nothing out.
  [[nodiscard]] Hash128 seen(const Hash128& visible, Position row) const {
    const Span span = hidden(row);
    if (span.empty()) return visible;
    return Hasher().add(visible).add_text("hidden").add(bits(span.begin)).add(bits(span.end)).finish();
  }

  // How many of n_rows from `row` on leave out the same.
  [[nodiscard]] std::int32_t fit(Position row, std::int32_t n_rows) const {
    if (chunk == 0 || !where.contains(row)) return n_rows;
    return std::min({n_rows, chunk - row.value() % chunk, where.end - row});
  }

 private:
  static std::uint64_t bits(Position position) { return static_cast<std::uint64_t>(position.value()); }
};

}  // namespace ebb
