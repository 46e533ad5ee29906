#include "base/split_text.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(SplitText, gives_what_stands_between_marks_and_nothing_that_is_empty) {
  EXPECT_EQ(split_text("a,bc,,d,", ','), (std::vector<std::string_view>{"a", "bc", "d"}));
  EXPECT_EQ(split_text("a", ','), (std::vector<std::string_view>{"a"}));
  EXPECT_TRUE(split_text("", ',').empty());
  EXPECT_TRUE(split_text(",,", ',').empty());
}

TEST(Trimmed, has_no_space_around_it) {
  EXPECT_EQ(trimmed(" \n a b\t\r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \n"), "");
  EXPECT_EQ(trimmed(""), "");
}

}  // namespace
}  // namespace ebb
