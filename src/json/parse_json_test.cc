#include "json/parse_json.h"

#include <ctime>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string nested(int n_levels) {
  return std::string(static_cast<std::size_t>(n_levels), '[') + std::string(static_cast<std::size_t>(n_levels), ']');
}

std::string error_of(std::string_view text) {
  const auto json = parse_json(text);
  EXPECT_FALSE(json.ok());
  EXPECT_EQ(json.status().code(), Code::kInvalidArgument);
  return json.status().message();
}

TEST(ParseJson, keeps_values_and_the_order_of_members) {
  EXPECT_EQ(parse_json(R"({"b":[1,-2.5,"x",null],"a":true})").value().dump(), R"({"b":[1,-2.5,"x",null],"a":true})");
  EXPECT_TRUE(parse_json(nested(100)).ok());
}

TEST(ParseJson, text_that_is_too_deep_is_refused_whole_or_broken) {
  EXPECT_THAT(error_of(nested(1'000)), HasSubstr("nested deeper than 128"));
  EXPECT_THAT(error_of(nested(1'000'000)), HasSubstr("nested deeper than 128"));
  EXPECT_THAT(error_of(std::string(1'000, '[')), HasSubstr("nested deeper than 128"));
}

TEST(ParseJson, text_of_too_many_values_is_refused_and_a_prompt_of_a_million_tokens_is_not) {
  const auto repeated = [](std::string_view item, std::size_t n) {
    std::string text = "{\"prompt\":[";
    for (std::size_t i = 0; i < n; ++i) text += item;
    return text + "0]}";
  };
  EXPECT_EQ(parse_json(repeated("151643,", 1'010'000)).value()["prompt"].size(), 1'010'001U);
  EXPECT_THAT(error_of(repeated("[{}],", 600'000)), HasSubstr("at most 1048576"));
  EXPECT_THAT(error_of(repeated("{\"a\":1},", 400'000)), HasSubstr("at most 1048576"));
  EXPECT_THAT(error_of(repeated("1,", 2'000'000) + "x"), HasSubstr("at most 1048576"));
}

TEST(ParseJson, a_name_that_stands_twice_is_refused_where_that_is_asked_for) {
  const auto read = [](std::string_view text) { return parse_json(text, kMostJsonValues, RepeatedNames::kRefused); };
  EXPECT_TRUE(read(R"({"a":{"b":1},"c":{"b":2}})").ok());
  EXPECT_THAT(read(R"({"a":1,"b":2,"a":1})").status().message(), HasSubstr("a name twice"));
  EXPECT_THAT(read(R"([{"a":{"b":1,"b":2}}])").status().message(), HasSubstr("a name twice"));
}

std::string object_of(std::size_t n_members) {
  std::string text = "{";
  for (std::size_t i = 0; i < n_members; ++i) text += fmt::format("\"name{}\":{},", i, i);
  return text + "\"name0\":-1}";
}

TEST(ParseJson, objects_of_too_many_members_are_refused_and_the_last_value_of_a_name_counts) {
  const auto json = parse_json(object_of(16'384)).value();
  EXPECT_EQ(json.size(), 16'384U);
  EXPECT_EQ(json.begin().key(), "name0");
  EXPECT_EQ(json["name0"], -1);
  EXPECT_THAT(error_of(object_of(1'000'000)), HasSubstr("at most 16384"));
}

TEST(ParseJson, hostile_text_costs_no_more_than_its_length) {
  std::string lists = "[";
  std::string objects = "[";
  for (int i = 0; i < 300'000; ++i) lists += "[{}],";
  for (int i = 0; i < 60; ++i) objects += object_of(16'000) + ",";
  const std::clock_t start = std::clock();
  EXPECT_TRUE(parse_json(lists + "0]").ok());
  EXPECT_EQ(parse_json(objects + "0]").status().code(), Code::kInvalidArgument);  // 60 x 32002 values
  // A parser that looks at all siblings for each value takes minutes of the CPU's time.
  EXPECT_LT(std::clock() - start, 20 * CLOCKS_PER_SEC);
}

TEST(ParseJson, says_where_text_stops_being_json_and_repeats_nothing_of_it) {
  EXPECT_THAT(error_of("{"), HasSubstr("ends too early, after 1 bytes"));
  EXPECT_THAT(error_of(""), HasSubstr("ends too early, after 0 bytes"));
  EXPECT_THAT(error_of(R"({"secret":nought})"), AllOf(HasSubstr("byte 12 of 17"), Not(HasSubstr("secret"))));
  EXPECT_THAT(error_of(""), HasSubstr("not JSON"));
}

TEST(ParseJson, a_number_that_is_too_large_is_an_error_and_no_exception) {
  EXPECT_THAT(error_of(R"({"n":1e400})"), AllOf(HasSubstr("too large"), Not(HasSubstr("1e400"))));
  EXPECT_THAT(error_of("-1e400"), HasSubstr("too large"));
}

}  // namespace
}  // namespace ebb
