// Distinct integer types for the things that ebb counts.
//
// Mixing a position with a token or a frame with a block must not compile, so each is a type of its own around an
// integer. They order, compare, hash and print; arithmetic exists only where it means something (positions).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace ebb {

template <class Tag, class Int>
class Id {
 public:
  using Value = Int;

  constexpr Id() = default;
  constexpr explicit Id(Int value) : value_(value) {}

  [[nodiscard]] constexpr Int value() const { return value_; }
  // For indexing arrays; the value must not be negative.
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }

  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  Int value_ = 0;
};

// A vocabulary id.
using Token = Id<struct TokenTag, std::int32_t>;
// A place in a session's logical space; given once, never reused or shifted.
using Position = Id<struct PositionTag, std::int32_t>;
// A block of one session, in the order in which its blocks were opened.
using BlockIndex = Id<struct BlockTag, std::int32_t>;
// One frame of the pool.
using FrameIndex = Id<struct FrameTag, std::int32_t>;
using LayerIndex = Id<struct LayerTag, std::int32_t>;
// A KV head within its layer.
using HeadIndex = Id<struct HeadTag, std::int32_t>;

constexpr Position operator+(Position p, std::int32_t n_tokens) { return Position(p.value() + n_tokens); }
constexpr Position operator-(Position p, std::int32_t n_tokens) { return Position(p.value() - n_tokens); }
constexpr std::int32_t operator-(Position a, Position b) { return a.value() - b.value(); }

}  // namespace ebb

template <class Tag, class Int>
struct std::hash<ebb::Id<Tag, Int>> {
  std::size_t operator()(ebb::Id<Tag, Int> id) const noexcept { return std::hash<Int>{}(id.value()); }
};
