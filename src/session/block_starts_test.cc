#include "session/block_starts.h"

#include "gtest/gtest.h"

namespace ebb {
namespace {

Hash128 named(std::uint64_t n) { return Hasher().add(n).finish(); }

std::vector<Token> tokens_of(std::initializer_list<std::int32_t> values) {
  std::vector<Token> tokens;
  for (const std::int32_t value : values) tokens.emplace_back(value);
  return tokens;
}

TEST(BlockStarts, the_block_with_most_in_common_is_found) {
  BlockStarts starts;
  starts.add(named(1), named(10), tokens_of({1, 2, 9, 9}));
  starts.add(named(1), named(11), tokens_of({1, 2, 3, 9}));
  starts.add(named(2), named(12), tokens_of({1, 2, 3, 4}));
  const BlockStarts::Match match = starts.find(named(1), tokens_of({1, 2, 3, 4}));
  EXPECT_EQ(match.name, named(11));
  EXPECT_EQ(match.n_common, 3U);
}

TEST(BlockStarts, nothing_in_common_is_no_match) {
  BlockStarts starts;
  starts.add(named(1), named(10), tokens_of({1, 2}));
  EXPECT_EQ(starts.find(named(1), tokens_of({7, 2})).n_common, 0U);
  EXPECT_EQ(starts.find(named(3), tokens_of({1, 2})).n_common, 0U);
  EXPECT_EQ(starts.find(named(1), {}).n_common, 0U);
}

TEST(BlockStarts, no_more_is_found_than_was_listed) {
  BlockStarts starts;
  starts.add(named(1), named(10), tokens_of({1, 2}));
  EXPECT_EQ(starts.find(named(1), tokens_of({1, 2, 3})).n_common, 2U);
}

TEST(BlockStarts, a_block_is_kept_once_and_the_oldest_is_forgotten) {
  BlockStarts starts(2);
  starts.add(named(1), named(10), tokens_of({1}));
  starts.add(named(1), named(10), tokens_of({1}));
  EXPECT_EQ(starts.size(), 1U);
  starts.add(named(1), named(11), tokens_of({2}));
  starts.add(named(1), named(12), tokens_of({3}));
  EXPECT_EQ(starts.size(), 2U);
  EXPECT_EQ(starts.find(named(1), tokens_of({1})).n_common, 0U);
  EXPECT_EQ(starts.find(named(1), tokens_of({3})).n_common, 1U);
}

}  // namespace
}  // namespace ebb
