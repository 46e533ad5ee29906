#include "base/check.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(Check, lets_a_kept_law_pass_and_evaluates_it_once) {
  int n_evaluated = 0;
  EBB_CHECK(++n_evaluated == 1, "evaluated {} times", n_evaluated);
  EBB_CHECK(true);
  EXPECT_EQ(n_evaluated, 1);
}

TEST(Check, does_not_format_values_of_a_kept_law) {
  int n_formatted = 0;
  const auto value = [&] { return ++n_formatted; };
  EBB_CHECK(n_formatted == 0, "{}", value());
  EXPECT_EQ(n_formatted, 0);
}

TEST(CheckDeathTest, stops_naming_place_law_and_values) {
  const int n_hot = 3;
  EXPECT_DEATH(EBB_CHECK(n_hot <= 2, "{} hot frames", n_hot), "check_test.cc:[0-9]+: n_hot <= 2: 3 hot frames");
  EXPECT_DEATH(EBB_CHECK(n_hot <= 2), "check_test.cc:[0-9]+: n_hot <= 2\n");
}

}  // namespace
}  // namespace ebb
