#include "chat/same_reply.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

const ReplyRules kRules = {.calls = &hermes_calls()};

std::string call(const std::string& object) { return "Let me look.\n<tool_call>\n" + object + "\n</tool_call>"; }

TEST(SameReply, arguments_are_the_same_whatever_their_white_space) {
  EXPECT_TRUE(is_same_reply(kRules, call(R"({"name": "read", "arguments": {"path": "a b.c", "n": 1}})"),
                            call(R"({"name":"read","arguments":{"path":"a b.c","n":1}})")));
  EXPECT_TRUE(is_same_reply(kRules, call(R"({"name": "read", "arguments": {"path": "\u00e9"}})"),
                            call(R"({"name": "read", "arguments": {"path": "é"}})")));
}

TEST(SameReply, any_other_difference_is_one) {
  const std::string written = call(R"({"name": "read", "arguments": {"path": "a b.c"}})");
  EXPECT_FALSE(is_same_reply(kRules, written, call(R"({"name": "read", "arguments": {"path": "ab.c"}})")));
  EXPECT_FALSE(is_same_reply(kRules, written, call(R"({"name": "write", "arguments": {"path": "a b.c"}})")));
  EXPECT_FALSE(is_same_reply(kRules, written, "Let  me look.\n" + written.substr(written.find('<'))));
  EXPECT_FALSE(is_same_reply(kRules, written, written + written.substr(written.find('<'))));
  EXPECT_FALSE(is_same_reply(kRules, written, "<think>so</think>" + written));
}

TEST(SameReply, arguments_are_the_same_in_any_order) {
  EXPECT_TRUE(is_same_reply(kRules, call(R"({"name": "read", "arguments": {"path": "a", "n": 1}})"),
                            call(R"({"name": "read", "arguments": {"n": 1, "path": "a"}})")));
}

TEST(SameReply, arguments_that_are_no_json_must_be_equal_byte_for_byte) {
  EXPECT_FALSE(is_same_reply(kRules, "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": ",
                             "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\":"));
}

TEST(SameReply, arguments_that_are_nested_too_deeply_must_be_equal_byte_for_byte) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const std::string written = call(R"({"name": "read", "arguments": ")" + deep + "\"}");
  EXPECT_TRUE(is_same_reply(kRules, written, written));
  EXPECT_FALSE(is_same_reply(kRules, written, call(R"({"name": "read", "arguments": " )" + deep + "\"}")));
}

// What is said behind the last place, behind what was written up to there; "-": there is no place.
std::string mended(const ReplyRules& rules, const std::string& written, const std::string& said) {
  const auto places = find_same_places(rules, written, said);
  std::string text = "-";
  std::pair<std::size_t, std::size_t> before;
  for (const auto& place : places) {
    EXPECT_TRUE(place.first >= before.first || place.second >= before.second);
    before = place;
    text = written.substr(0, place.first) + "|" + said.substr(place.second);
    // All places are where they are said to be.
    const std::string joined = written.substr(0, place.first) + said.substr(place.second);
    EXPECT_TRUE(is_same_reply(rules, joined, said)) << joined;
  }
  return text;
}

std::string begun(const std::string& arguments) {
  return "Let me look.\n<tool_call>\n{\"name\": \"read\", \"arguments\": " + arguments;
}
std::string ended(const std::string& arguments) {
  return "Let me look.\n<tool_call>\n{\"name\":\"read\",\"arguments\":" + arguments + "}\n</tool_call>";
}

TEST(SamePlaces, a_call_that_broke_off_is_the_same_up_to_where_it_was_mended) {
  const std::string end = "}\n</tool_call>";
  EXPECT_EQ(mended(kRules, begun(R"({"path": "a b)"), ended(R"({"path":"a b"})")), begun(R"({"path": "a b|"})") + end);
  EXPECT_EQ(mended(kRules, begun(R"({"n":1,"all":[true,{"k":null}],"path":"say \"x\" \\\\)"),
                   ended(R"({ "n": 1,  "all": [true, {"k": null} ], "path": "say \"x\" \\\\ y"})")),
            begun(R"({"n":1,"all":[true,{"k":null}],"path":"say \"x\" \\\\| y"})") + end);
  EXPECT_EQ(mended(kRules, begun("{\"n\": "), ended("{\n \"n\": 5\n}")), begun("{\"n\": |5\n}") + end);
  EXPECT_EQ(mended(kRules, begun("{"), ended("{ }")), begun("{|}") + end);
}

TEST(SamePlaces, end_where_anything_else_differs) {
  const auto rest = [](const std::string& written, const std::string& said) {
    const std::string text = mended(kRules, begun(written), ended(said));
    const std::size_t cut = text.find('|');
    return cut == std::string::npos ? text : text.substr(cut);
  };
  const std::string end = "}\n</tool_call>";
  EXPECT_EQ(rest(R"({"path": "a  b)", R"({"path": "a b"})"), "|b\"}" + end) << "white space inside a text";
  EXPECT_EQ(rest(R"({"path": "a )", R"({"path": "a"})"), "|\"}" + end);
  EXPECT_EQ(rest(R"({"n": 1 2)", R"({"n": 12})"), "|2}" + end) << "two words and one";
  EXPECT_EQ(rest(R"({"n": 1 )", R"({"n": 12})"), "|2}" + end);
  EXPECT_EQ(rest(R"({"n": 12)", R"({"n":1 2})"), "-") << "mended to no JSON";
  EXPECT_EQ(rest(R"({"n": 1, "m")", R"({"m": 1, "n": 1})"), "|m\": 1, \"n\": 1}" + end);
  EXPECT_EQ(rest(R"({oops )", R"({"n": 1})"), "|\"n\": 1}" + end) << "what is no JSON";
}

TEST(SamePlaces, are_none_where_what_comes_before_the_arguments_differs) {
  const std::string written = begun(R"({"path": "a)");
  EXPECT_EQ(mended(kRules, written, "So. " + ended(R"({"path": "a"})")), "-");
  EXPECT_EQ(mended(kRules, written, "Let me look."), "-");
  EXPECT_EQ(mended(kRules, "Let me", ended(R"({"path": "a"})")), "-");
  std::string other = ended(R"({"path": "a"})");
  other.replace(other.find("read"), 4, "ls");
  EXPECT_EQ(mended(kRules, written, other), "-");
  EXPECT_EQ(mended(kRules, ended(R"({"n": 2})") + written.substr(written.find('\n')),
                   ended(R"({"n": 3})") + ended(R"({"path": "a"})").substr(12)),
            "-");
}

TEST(SamePlaces, are_in_the_last_call_that_was_begun_and_behind_its_whole_arguments) {
  const std::string first = ended(R"({ "n":2 })");
  const std::string second = begun(R"({"path": "a)");
  EXPECT_EQ(mended(kRules, first + second.substr(12), ended(R"({"n": 2})") + ended(R"({"path":"a"})").substr(12)),
            first + second.substr(12) + "|\"}}\n</tool_call>");
  EXPECT_EQ(mended(kRules, begun(R"({"n": 2})") + "}\n</tool", ended("{\"n\":2}")),
            begun(R"({"n": 2})") + "}\n</tool|_call>");
}

TEST(SamePlaces, are_none_where_arguments_do_not_stand_in_the_text) {
  // In tags, where white space at a value's end is the tag's or the value's, in a string, and in front of the name.
  const ReplyRules tags = {.calls = &qwen_xml_calls()};
  const std::string xml = "<tool_call>\n<function=read>\n<parameter=path>\na";
  EXPECT_EQ(mended(tags, xml, xml + "\n</parameter>\n</function>\n</tool_call>"), "-");
  EXPECT_EQ(mended(kRules, begun(R"("{)"), ended(R"({"path": "a"})")), "-");
  EXPECT_EQ(mended(kRules, R"(<tool_call>{"arguments": {"path": "a"}, "name": "read")",
                   R"(<tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>)"),
            "-");
}

}  // namespace
}  // namespace ebb
