// Values of calls that hold calls, or speak of them, in the form's own marks.
#include "chat/calls/nesting_reader.h"
#include "chat/reply_parser_test.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

struct Family {
  const CallFormat& calls;
  std::string open;   // up to the value of read's path
  std::string close;  // behind it
};

std::vector<Family> families() {
  return {{qwen_xml_calls(), "<tool_call>\n<function=read>\n<parameter=path>\n",
           "\n</parameter>\n</function>\n</tool_call>"},
          {glm_form(), "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>", "</arg_value>\n</tool_call>"},
          {gemma_calls(), "<|tool_call>call:read{path:<|\"|>", "<|\"|>}<tool_call|>"}};
}

ParsedReply read(const Family& family, const std::string& text) {
  ParsedReply whole = parse_reply(rules_for(&family.calls), text);
  EXPECT_EQ(whole, parse_reply_by_bytes(rules_for(&family.calls), text));
  return whole;
}

// Whether the value reads back as it was written, alone and as the first of two calls.
void expect_reads_back(const Family& family, const std::string& value) {
  const std::string call = family.open + value + family.close;
  for (const std::string& reply : {call, call + "\n" + family.open + "other" + family.close}) {
    const ParsedReply read_back = read(family, reply);
    EXPECT_EQ(read_back.content, "") << reply;
    ASSERT_EQ(read_back.calls.size(), reply == call ? 1U : 2U) << reply;
    EXPECT_TRUE(read_back.calls.front().complete) << reply;
    EXPECT_EQ(Json::parse(read_back.calls.front().arguments)["path"], value) << reply;
  }
}

TEST(NestedCalls, whole_calls_are_part_of_a_value) {
  for (const Family& family : families()) {
    const std::string call = family.open + "b.c" + family.close;
    for (const std::string& value :
         {call, "A " + call + " B", call + "\n" + call, "In:\n" + call + "\nand " + call + ".\nEnd"}) {
      expect_reads_back(family, value);
    }
    expect_reads_back(family, "Twice: " + family.open + "in " + call + " out" + family.close + " done");
  }
}

TEST(NestedCalls, several_keys_and_calls_without_any) {
  const std::vector<Family> all = families();
  expect_reads_back(all[0],
                    "<function=read>\n<parameter=path>\na\n</parameter>\n<parameter=n>\n1\n</parameter>\n</function>");
  expect_reads_back(all[0], "see <tool_call>\n<function=ls>\n</function>\n</tool_call> there");
  expect_reads_back(all[1],
                    "<tool_call>read\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n<arg_key>b</arg_key>\n"
                    "<arg_value>2</arg_value>\n</tool_call>");
  expect_reads_back(all[2],
                    "<|tool_call>call:read{path:<|\"|>x, {y}<|\"|>,tags:[<|\"|>a<|\"|>,<|\"|>b<|\"|>]}<tool_call|>");
}

TEST(NestedCalls, a_value_that_speaks_of_marks_ends_where_it_ends) {
  for (const Family& family : families()) {
    const std::string mark = std::string(family.calls.openers().front().text);
    for (const std::string& value : {mark, "Write " + mark + " first, then " + mark, "the head " + family.open + "a"}) {
      expect_reads_back(family, value);
    }
  }
  expect_reads_back(families()[2], "a mark <|\"|> alone");
}

TEST(NestedCalls, a_reply_that_breaks_off_keeps_what_was_said) {
  for (const Family& family : families()) {
    if (&family.calls == &gemma_calls()) continue;  // it gives what is whole
    const std::string call = family.open + "b" + family.close;
    const ParsedReply reply = read(family, family.open + "A " + call + " and mo");
    EXPECT_EQ(reply.content, "");
    ASSERT_EQ(reply.calls.size(), 1U);
    EXPECT_FALSE(reply.calls.front().complete);
    EXPECT_EQ(Json::parse(reply.calls.front().arguments + "\"}")["path"], "A " + call + " and mo");
  }
}

TEST(NestedCalls, text_behind_an_opening_mark_is_held_within_bounds) {
  const Family family = families()[1];
  const std::string much(NestingReader::kMaxTrialBytes + 100, 'x');
  // A call that is whole stays one; one that is not done by then is none.
  expect_reads_back(family, "A " + family.open + "b" + family.close + much);
  ReplyParser parser(rules_for(&family.calls));
  std::size_t n_most = 0;
  ParsedReply reply;
  const std::string text = family.open + family.open + much + much + family.close + family.close;
  for (const char c : text) {
    for (const ReplyDelta& delta : parser.push({&c, 1})) add_delta(reply, delta);
    n_most = std::max(n_most, parser.n_held());
  }
  EXPECT_LE(n_most, NestingReader::kMaxTrialBytes + 100);
  EXPECT_EQ(Json::parse(reply.calls.at(0).arguments)["path"], family.open + much + much);
}

TEST(NestedCalls, marks_without_end_cost_no_more_than_their_length) {
  for (const Family& family : families()) {
    std::string text = family.open;
    while (text.size() < 400'000) text += family.open;
    const ParsedReply reply = parse_reply(rules_for(&family.calls), text);
    EXPECT_EQ(reply.calls.size(), 1U);
    while (text.size() < 800'000) text += family.open + "x <|\"|> y " + family.close;
    EXPECT_GE(parse_reply(rules_for(&family.calls), text).calls.size(), 1U);
  }
}

}  // namespace
}  // namespace ebb
