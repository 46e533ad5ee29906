#include "base/ids.h"

#include <type_traits>
#include <unordered_set>

#include <gtest/gtest.h>

namespace ebb {
namespace {

template <class A, class B>
concept Comparable = requires(A a, B b) {
  a == b;
};
template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};

TEST(Ids, do_not_mix) {
  static_assert(!std::is_convertible_v<Position, Token>);
  static_assert(!std::is_constructible_v<FrameIndex, BlockIndex>);
  static_assert(!Comparable<FrameIndex, BlockIndex>);
  static_assert(!Comparable<Position, std::int32_t>);
  static_assert(Comparable<Position, Position>);
}

TEST(Ids, come_from_and_go_to_integers_only_when_asked) {
  static_assert(!std::is_convertible_v<std::int32_t, Position>);
  static_assert(!std::is_convertible_v<Position, std::int32_t>);
  static_assert(sizeof(Position) == sizeof(std::int32_t));
  EXPECT_EQ(Position().value(), 0);
  EXPECT_EQ(Position(7).value(), 7);
  EXPECT_EQ(FrameIndex(7).index(), 7U);
}

TEST(Ids, are_ordered_by_value) {
  EXPECT_LT(Token(-1), Token(0));
  EXPECT_GT(Position(3), Position(2));
  EXPECT_EQ(LayerIndex(4), LayerIndex(4));
}

TEST(Ids, have_arithmetic_only_where_positions_are) {
  EXPECT_EQ(Position(5) + 3, Position(8));
  EXPECT_EQ(Position(5) - 3, Position(2));
  EXPECT_EQ(Position(5) - Position(8), -3);
  static_assert(!Addable<Position, Position>);
  static_assert(!Addable<FrameIndex, std::int32_t>);
}

TEST(Ids, are_keys_of_hash_tables) {
  const std::unordered_set<BlockIndex> blocks = {BlockIndex(1), BlockIndex(2), BlockIndex(1)};
  EXPECT_EQ(blocks.size(), 2U);
  EXPECT_TRUE(blocks.contains(BlockIndex(2)));
}

}  // namespace
}  // namespace ebb
