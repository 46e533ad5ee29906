#include "base/keep_share.h"

#include <array>

#include <gtest/gtest.h>

namespace ebb {
namespace {

using Kept = std::vector<std::int32_t>;

TEST(KeepShare, keeps_the_first_and_the_last_and_then_the_largest) {
  const std::array<double, 6> weights = {0.05, 0.1, 0.4, 0.1, 0.3, 0.05};
  EXPECT_EQ(keep_share(weights, 0.0), Kept({0, 5}));
  EXPECT_EQ(keep_share(weights, 0.1), Kept({0, 5})) << "what is kept in any case has it";
  EXPECT_EQ(keep_share(weights, 0.3), Kept({0, 2, 5})) << "the one that crosses the share is kept";
  EXPECT_EQ(keep_share(weights, 0.6), Kept({0, 2, 4, 5}));
  EXPECT_EQ(keep_share(weights, 0.85), Kept({0, 1, 2, 4, 5})) << "of equals the lower number";
  EXPECT_EQ(keep_share(weights, 1.0), Kept({0, 1, 2, 3, 4, 5}));
}

TEST(KeepShare, of_few_keeps_all) {
  EXPECT_EQ(keep_share({}, 0.5), Kept());
  EXPECT_EQ(keep_share(std::array{1.0}, 0.0), Kept({0}));
  EXPECT_EQ(keep_share(std::array{1.0, 2.0}, 0.0), Kept({0, 1}));
  EXPECT_EQ(keep_share(std::array{0.0, 0.0, 0.0}, 0.9), Kept({0, 2})) << "nothing has any share of nothing";
}

}  // namespace
}  // namespace ebb
