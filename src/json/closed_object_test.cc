#include "json/closed_object.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(ClosedObject, has_the_members_that_are_whole_and_a_text_as_far_as_it_goes) {
  EXPECT_EQ(closed_object(R"({"a":1,"b":[1,2)").dump(), R"({"a":1,"b":[1,2]})");
  EXPECT_EQ(closed_object(R"({"a":"x, {y","b":"he said \"no)").dump(), R"({"a":"x, {y","b":"he said \"no"})");
  EXPECT_EQ(closed_object(R"({"a":1,"b":)").dump(), R"({"a":1})");
  EXPECT_EQ(closed_object(R"({"a":{"b":1,"c)").dump(), R"({"a":{"b":1}})");
  EXPECT_EQ(closed_object(R"({"a":1})").dump(), R"({"a":1})");
  EXPECT_EQ(closed_object("{").dump(), "{}");
  EXPECT_EQ(closed_object("").dump(), R"({"text":""})");
  EXPECT_EQ(closed_object("ls -l").dump(), R"({"text":"ls -l"})");
}

TEST(ClosedObject, of_a_text_that_is_nested_without_end_nothing_is_left) {
  EXPECT_EQ(closed_object(R"({"a":)" + std::string(100000, '[')).dump(), "{}");
}

}  // namespace
}  // namespace ebb
