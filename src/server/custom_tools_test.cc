#include "server/custom_tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CustomTools, are_functions_of_one_text_with_their_calls_and_choice) {
  Json body = Json::parse(
      R"({"tools":[{"type":"custom","custom":{"name":"patch","description":"Edits","format":{"type":"text"}}},
      {"type":"function","function":{"name":"read"}}],
      "tool_choice":{"type":"custom","custom":{"name":"patch"}},
      "messages":[{"role":"assistant","tool_calls":[{"id":"1","type":"custom","custom":{"name":"patch","input":"a \"b\""}}]}]})");
  const auto names = say_custom_tools_as_functions(body);
  ASSERT_TRUE(names.ok()) << names.status().message();
  EXPECT_THAT(names->names, ElementsAre("patch"));
  EXPECT_THAT(names->warnings, IsEmpty());
  EXPECT_EQ(body["tools"][0], Json::parse(R"({"type":"function","function":{"name":"patch","description":"Edits",
      "parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}}})"));
  EXPECT_EQ(body["tools"][1], Json::parse(R"({"type":"function","function":{"name":"read"}})"));
  EXPECT_EQ(body["tool_choice"]["function"]["name"], "patch");
  const Json& call = body["messages"][0]["tool_calls"][0];
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(custom_input(call["function"]["arguments"].get<std::string>()), "a \"b\"");
}

TEST(CustomTools, a_format_that_is_a_regular_expression_is_the_pattern_of_the_text_and_others_are_told) {
  std::vector<std::string> warnings;
  const auto schema_of = [&](const char* format) {
    return custom_as_function({{"name", "q"}, {"format", Json::parse(format)}},
                              warnings)["parameters"]["properties"]["input"];
  };
  EXPECT_EQ(schema_of(R"({"type":"grammar","syntax":"regex","definition":"[a-z]+|[0-9]"})")["pattern"],
            "^(?:[a-z]+|[0-9])$");
  EXPECT_EQ(schema_of(R"({"type":"grammar","grammar":{"syntax":"regex","definition":"^a$"}})")["pattern"], "^a$");
  EXPECT_THAT(warnings, IsEmpty());
  EXPECT_EQ(schema_of(R"({"type":"grammar","syntax":"lark","definition":"start: x"})"),
            Json::parse(R"({"type":"string"})"));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("'lark' are not enforced")));
}

TEST(CustomTools, need_a_name_and_leave_other_requests_alone) {
  Json nameless = Json::parse(R"({"tools":[{"type":"custom","custom":{}}]})");
  EXPECT_THAT(say_custom_tools_as_functions(nameless).status().message(), HasSubstr("'tools[0].custom.name'"));
  const Json plain = Json::parse(R"({"messages":[{"role":"user","content":"q"}]})");
  Json body = plain;
  EXPECT_THAT(say_custom_tools_as_functions(body)->names, IsEmpty());
  EXPECT_EQ(body, plain);
  EXPECT_EQ(custom_input("{\"input\": \"cut"), "");
}

}  // namespace
}  // namespace ebb
