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

TEST(SameReply, arguments_that_break_off_are_the_same_but_for_white_space_that_says_nothing) {
  const auto begun = [](const std::string& arguments) {
    return "<tool_call>\n{\"name\": \"read\", \"arguments\": " + arguments;
  };
  EXPECT_TRUE(is_same_reply(kRules, begun(R"({"path": )"), begun(R"({"path":)")));
  EXPECT_TRUE(is_same_reply(kRules, begun(R"({"n":1,"all":[ true, 2 ] ,"path":"a \" b)"),
                            begun(R"({"n": 1, "all": [true, 2], "path": "a \" b)")));
  EXPECT_FALSE(is_same_reply(kRules, begun(R"({"path": "a b)"), begun(R"({"path": "ab)")));
  EXPECT_FALSE(is_same_reply(kRules, begun(R"({"path": "a)"), begun(R"({"path": "a ")")));
  EXPECT_FALSE(is_same_reply(kRules, begun(R"({"n": 1 2)"), begun(R"({"n": 12)")));
  EXPECT_FALSE(is_same_reply(kRules, begun(R"({"path": "a)"), begun(R"({"path": "a"})")));
}

TEST(SameReply, arguments_that_are_no_json_must_be_equal_byte_for_byte) {
  EXPECT_FALSE(is_same_reply(kRules, call(R"({"name": "read", "arguments": "[1, )"),
                             call(R"({"name": "read", "arguments": "[1,)")));
}

TEST(SameReply, arguments_that_are_nested_too_deeply_must_be_equal_byte_for_byte) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const std::string written = call(R"({"name": "read", "arguments": ")" + deep + "\"}");
  EXPECT_TRUE(is_same_reply(kRules, written, written));
  EXPECT_FALSE(is_same_reply(kRules, written, call(R"({"name": "read", "arguments": " )" + deep + "\"}")));
}

}  // namespace
}  // namespace ebb
