// What schemas ask of strings, in forms that write strings as they are: between tags (Qwen3-Coder's) and between marks (Gemma's).
#include "chat/call_grammar.h"
#include "chat/reply_parser.h"
#include "grammar/grammar_match_test.h"
#include "gtest/gtest.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

// The values that a schema takes and refuses, as JSON.
struct Case {
  std::string schema;
  std::vector<Json> taken;
  std::vector<Json> refused;
};

CallChoice choice_of(const std::string& schema) {
  const Json parameters = {{"type", "object"}, {"properties", {{"v", Json::parse(schema)}}}, {"required", {"v"}}};
  return {.tools = {{.name = "f", .parameters = parameters}}};
}

std::string in_tags(const Json& value) {
  return fmt::format("<tool_call>\n<function=f>\n<parameter=v>\n{}\n</parameter>\n</function>\n</tool_call>",
                     value.is_string() ? value.get<std::string>() : value.dump());
}

std::string gemma_value(const Json& value) {
  if (value.is_string()) return fmt::format("<|\"|>{}<|\"|>", value.get<std::string>());
  if (!value.is_structured()) return value.dump();
  std::string all;
  for (const auto& [key, item] : value.items()) {
    all += fmt::format("{}{}{}", all.empty() ? "" : ",", value.is_object() ? key + ":" : "", gemma_value(item));
  }
  return value.is_object() ? "{" + all + "}" : "[" + all + "]";
}

std::string in_marks(const Json& value) {
  return fmt::format("<|tool_call>call:f{{v:{}}}<tool_call|>", gemma_value(value));
}

void expect_case(const CallFormat& format, const Case& c, std::string (*write)(const Json&)) {
  const CallChoice choice = choice_of(c.schema);
  const auto made = call_grammar(format, choice);
  ASSERT_TRUE(made.ok()) << c.schema << ": " << made.status().message();
  EXPECT_TRUE(made->unsupported.empty()) << c.schema << ": " << made->unsupported[0];
  GrammarMatch grammar(made->grammar);
  ASSERT_EQ(grammar.error(), "") << c.schema;
  for (const Json& value : c.taken) {
    const std::string text = write(value);
    EXPECT_TRUE(grammar.matches(text)) << c.schema << " should take " << text;
    const ParsedReply reply = parse_reply({.calls = &format, .tools = choice.tools}, text);
    ASSERT_EQ(reply.calls.size(), 1U) << text;
    EXPECT_EQ(Json::parse(reply.calls[0].arguments)["v"], value) << text;
  }
  for (const Json& value : c.refused) {
    EXPECT_FALSE(grammar.matches(write(value))) << c.schema << " should refuse " << write(value);
  }
}

void expect_both(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    expect_case(qwen_xml_calls(), c, in_tags);
    expect_case(gemma_calls(), c, in_marks);
  }
}

TEST(StringSchemas, values_that_are_named_are_the_only_ones) {
  expect_both({
      {R"({"enum":["celsius","fahrenheit"]})", {"celsius", "fahrenheit"}, {"kelvin", "celsius ", "", "cel"}},
      {R"({"type":"string","enum":["a \"b\"","c\n\nd","< /"]})", {"a \"b\"", "c\n\nd", "< /"}, {"c\nd", "<"}},
      {R"({"const":"yes"})", {"yes"}, {"no"}},
      {R"({"type":["string","null"],"enum":["on",null]})", {"on", nullptr}, {"off", 1}},
      {R"({"enum":["low",3]})", {"low", 3}, {"high", 4}},
      {R"({"anyOf":[{"enum":["auto"]},{"type":"integer","minimum":0}]})", {"auto", 7}, {"manual", -7}},
      {R"({"$ref":"#/properties/v/$defs/u","$defs":{"u":{"enum":["m","s"]}}})", {"m", "s"}, {"h"}},
  });
}

TEST(StringSchemas, a_value_that_would_end_early_is_never_written) {
  expect_both({{R"({"enum":["a</parameter>b<|\"|>d","c"]})", {"c"}, {"a", "", "a</parameter>b<|\"|>d"}}});
  for (const CallFormat* format : {&qwen_xml_calls(), &gemma_calls()}) {
    const auto made = call_grammar(*format, choice_of(R"({"enum":["a</parameter>b<|\"|>"]})"));
    EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
  }
}

TEST(StringSchemas, patterns_and_formats_hold) {
  expect_both({
      {R"({"type":"string","pattern":"^[A-Z]{2}-[0-9]+$"})", {"AB-7", "XY-001"}, {"A-7", "AB-", "ab-7", "AB-7x"}},
      {R"({"type":"string","pattern":"needle"})", {"needle", "a needle.", "x\"needle"}, {"needl", ""}},
      {R"({"type":"string","pattern":"^<[a-z]+>$"})", {"<b>", "<code>"}, {"<b", "<B>"}},
      {R"({"type":"string","pattern":"^a.c$"})", {"abc", "a\"c", "a\u00e9c"}, {"a\nc", "ac"}},
      {R"({"type":"string","format":"date"})", {"2026-02-28"}, {"2026-02-31", "today"}},
      {R"({"type":"string","format":"uuid"})", {"01234567-89ab-cdef-0123-456789abcdef"}, {"01234567"}},
      {R"({"type":"string","format":"email"})", {"a.b@c.org"}, {"a.b", "a@b"}},
  });
}

TEST(StringSchemas, lengths_are_counted) {
  expect_both({
      {R"({"type":"string","maxLength":4})",
       {"", "abcd", "a\nb<", "\n\n\n\n", "\u00e9\u00e9\u00e9\u00e9"},
       {"abcde", "\u00e9\u00e9\u00e9\u00e9\u00e9"}},
      {R"({"type":"string","minLength":2,"maxLength":3})", {"ab", "abc", "<b", "\n/"}, {"a", "", "abcd"}},
      {R"({"type":"string","minLength":3})", {"abc", "a longer text, with <b> and\nlines"}, {"ab", ""}},
      {R"({"type":["string","integer"],"maxLength":2})", {"ab", 12345}, {"abc"}},
  });
  for (const CallFormat* format : {&qwen_xml_calls(), &gemma_calls()}) {
    const auto long_text = call_grammar(*format, choice_of(R"({"type":"string","maxLength":5000})"));
    ASSERT_TRUE(long_text.ok());
    ASSERT_EQ(long_text->unsupported.size(), 1U);
    EXPECT_TRUE(long_text->unsupported[0].starts_with("minLength or maxLength of many characters"));
  }
}

TEST(StringSchemas, gemmas_lists_and_objects_are_held_too) {
  const std::vector<Case> cases = {
      {R"({"type":"array","items":{"enum":["a","b"]},"minItems":1})",
       {Json::array({"a"}), Json::array({"b", "a"})},
       {Json::array(), Json::array({"c"})}},
      {R"({"type":"object","properties":{"x":{"type":"integer"},"k":{"enum":["s"]}},"required":["x"]})",
       {{{"x", 1}}, {{"x", 1}, {"k", "s"}}},
       {{{"k", "s"}}, {{"x", "1"}}, {{"x", 1}, {"k", "t"}}}},
      {R"({"type":"object","properties":{"x":true},"additionalProperties":{"type":"integer"}})",
       {{{"x", "any"}, {"y", 1}}, {{"xy", 1}}},
       {{{"y", "1"}}}},
      {R"({"type":"object"})", {Json::object(), {{"a", {1, "b", {{"c", nullptr}}}}}}, {Json::array({1})}},
  };
  for (const Case& c : cases) expect_case(gemma_calls(), c, in_marks);
}

}  // namespace
}  // namespace ebb
