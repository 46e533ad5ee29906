#include "session/match.h"

#include <vector>

#include <gtest/gtest.h>

namespace ebb {
namespace {

std::vector<Token> tokens(std::initializer_list<std::int32_t> ids) {
  std::vector<Token> result;
  for (const std::int32_t id : ids) result.emplace_back(id);
  return result;
}

TEST(Match, counts_computed_tokens_then_waiting_ones) {
  const auto computed = tokens({1, 2, 3});
  const auto waiting = tokens({4});
  EXPECT_EQ(count_common(computed, waiting, tokens({1, 2, 3, 4, 5})), 4);
  EXPECT_EQ(count_common(computed, waiting, tokens({1, 2, 3, 9})), 3);
  EXPECT_EQ(count_common(computed, waiting, tokens({1, 2})), 2);
  EXPECT_EQ(count_common(computed, waiting, tokens({1, 9, 3, 4})), 1);
  EXPECT_EQ(count_common(computed, waiting, {}), 0);
  EXPECT_EQ(count_common({}, waiting, tokens({4, 5})), 1);
  EXPECT_EQ(count_common({}, {}, tokens({4, 5})), 0);
}

}  // namespace
}  // namespace ebb
