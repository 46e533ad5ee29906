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

}  // namespace
}  // namespace ebb
