#include "server/key_bound.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(KeyBounds, one_of_several_keys_has_half_unless_the_flags_say_otherwise) {
  EXPECT_EQ(key_bound(std::nullopt, 64, 0), 64U);
  EXPECT_EQ(key_bound(std::nullopt, 64, 1), 64U);
  EXPECT_EQ(key_bound(std::nullopt, 64, 2), 32U);
  EXPECT_EQ(key_bound(std::nullopt, 1, 9), 1U);
  EXPECT_EQ(key_bound(50, 64, 2), 50U);
  EXPECT_EQ(key_bound(100, 64, 1), 64U);
}

}  // namespace
}  // namespace ebb
