// Half-open ranges of positions.
//
//   [begin, end)   holds begin, begin+1, ..., end-1; empty when begin == end
//
#pragma once

#include <algorithm>

#include "base/ids.h"

namespace ebb {

struct Span {
  Position begin;
  Position end;

  [[nodiscard]] constexpr std::int32_t n_tokens() const { return end - begin; }
  [[nodiscard]] constexpr bool empty() const { return begin >= end; }
  [[nodiscard]] constexpr bool contains(Position p) const { return begin <= p && p < end; }
  [[nodiscard]] constexpr bool overlaps(Span o) const { return begin < o.end && o.begin < end; }

  friend constexpr bool operator==(Span, Span) = default;
};

[[nodiscard]] constexpr Span intersect(Span a, Span b) {
  const Position begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

}  // namespace ebb
