// Replies of every family cut everywhere, and random text: what comes out depends on the text alone, and nothing is lost.
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/toy_rounds.h"
#include "chat/reply_parser_test.h"

namespace ebb {
namespace {

// Samples of all families, well-formed and not; every reply must be the same for every cut.
const std::vector<std::pair<const CallFormat*, std::string>>& samples() {
  static const std::vector<std::pair<const CallFormat*, std::string>> kSamples = {
      {nullptr, "<think>\nWhy \u00e9? </think>\n\n So <think>.\n "},
      {&hermes_calls(),
       "<think>a</think>Hi\n <tool_call>\n{\"name\": \"read\", \"arguments\": {\"p\": \"<\\u00e9\"}}\n</tool_call>"
       "\n<tool_call>{\"arguments\": \"{\\\"x\\\": 1}\", \"name\": \"ls\"}</tool_call> z"},
      {&hermes_calls(),
       "<tool_call>\n<tool_call>{\"name\": \"ls\", \"arguments\": {oops}} </tool_call <tool_call></tool_call>\n"},
      {&hermes_calls(), "<tool_call>{\"name\":\"ls\",\"arguments\":12}</tool_call>}<tool_call>{\"a\":<tool_call>"},
      {&qwen_xml_calls(),
       "a\n<tool_call>\n<function=read>\n<parameter=path>\n</parameter\n<b>\n</parameter>\n<parameter=n>\n-3\n"
       "</parameter>\n<parameter=tags>\n(1, 'a\\'')\n</parameter> </function>\n</tool_call>\n\n<function=x"},
      {&qwen_xml_calls(),
       "<tool_call>\n<function=read>\n<parameter=path>\nA "
       "<tool_call>\n<function=read>\n<parameter=path>\n<function=ls>\n"
       "</function>\n</parameter>\n<parameter=n>\n3\n</parameter>\n</function>\n</tool_call> "
       "B\n</parameter>\n</function>\n"
       "</tool_call>\n<tool_call>\n<function=read>\n<parameter=path>\n<tool_call>\n<function=ls>\n<parameter=a>x\n"
       "</parameter>\n</function>\n</tool_call>"},
      {&gemma_calls(),
       "<|tool_call>call:read{path:<|\"|>A <|tool_call>call:read{path:<|\"|>b<|\"|>,n:2}<tool_call|> "
       "B<|\"|>,n:1}<tool_call|>"
       "<|tool_call>call:read{path:<|\"|>one <|\"|> mark<|\"|>}<tool_call|> z"},
      {&qwen_xml_calls(), "<function=read><parameter=all>maybe</parameter><parameter=\nx></function>"},
      {&llama3_calls(),
       " {\"name\": \"read\", \"parameters\": {\"path\": \"a\"}} ; {\"name\": \"no\", \"parameters\": {}}"},
      {&llama3_calls(), "x <|python_tag|> {\"parameters\": {\"k\": [1, {\"z\": null}]}, \"name\": \"q\"}; tail"},
      {&mistral_list_calls(),
       "t [TOOL_CALLS] [{\"name\": \"read\", \"arguments\": {\"a\": 1}} , {\"name\": \"ls\"}, {\"x\": 1}]"},
      {&mistral_named_id_calls(),
       "[TOOL_CALLS]read[CALL_ID]k3VdTz01q[ARGS] {\"a\": 1}\n[TOOL_CALLS]ls[ARGS]{a}[TOOL_CALLS]"},
      {&functionary_calls(), "a >>> b\n>>>>read\n{\"a\": \">>>x\\n\"}>>>ls\n {} >>>no\n[] >>>x\n{>>>"},
  };
  return kSamples;
}

std::vector<std::string_view> cut(std::string_view text, const std::vector<std::size_t>& places) {
  std::vector<std::string_view> pieces;
  std::size_t begin = 0;
  for (const std::size_t place : places) {
    pieces.push_back(text.substr(begin, place - begin));
    begin = place;
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

ParsedReply stream(const ReplyRules& rules, const std::vector<std::string_view>& pieces) {
  ReplyParser parser(rules);
  ParsedReply reply;
  for (const std::string_view piece : pieces) {
    for (const ReplyDelta& delta : parser.push(piece)) add_delta(reply, delta);
  }
  for (const ReplyDelta& delta : parser.finish()) add_delta(reply, delta);
  return reply;
}

TEST(ReplyParserRandom, says_the_same_for_every_cut_of_the_text) {
  std::mt19937 random(1);
  for (const auto& [calls, text] : samples()) {
    for (const auto reasoning :
         {ReasoningFormat::kNone, ReasoningFormat::kDeepseek, ReasoningFormat::kDeepseekLegacy}) {
      ReplyRules rules = rules_for(calls);
      rules.reasoning = reasoning;
      const ParsedReply whole = parse_reply(rules, text);
      for (std::size_t i = 0; i <= text.size(); ++i) {
        for (std::size_t j = i; j <= text.size(); j += 1 + (i % 7)) {
          ASSERT_EQ(stream(rules, cut(text, {i, j})), whole) << text << " cut at " << i << " and " << j;
        }
      }
      std::vector<std::size_t> every;
      for (std::size_t i = 1; i < text.size(); ++i) every.push_back(i);
      ASSERT_EQ(stream(rules, cut(text, every)), whole) << text;
      for (int round = 0; round < 50; ++round) {
        std::vector<std::size_t> some;
        for (const std::size_t place : every) {
          if (random() % 5 == 0) some.push_back(place);
        }
        ASSERT_EQ(stream(rules, cut(text, some)), whole) << text;
      }
    }
  }
}

// Text made of the pieces that parsers trip over.
std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> kParts = {"<tool_call>",
                                                  "</tool_call>",
                                                  "{\"name\": \"read\", \"arguments\": ",
                                                  "{\"name\": \"ls\", \"parameters\": {}}",
                                                  "{\"a\": 1}",
                                                  "{",
                                                  "}",
                                                  "[",
                                                  "]",
                                                  "\"",
                                                  "\\",
                                                  ",",
                                                  ":",
                                                  "null",
                                                  "-1.5e3",
                                                  "<function=read>\n<parameter=path>\n",
                                                  "\n</parameter>\n</function>",
                                                  "<tool_call>read\n",
                                                  "<arg_key>path</arg_key>\n<arg_value>",
                                                  "</arg_value>\n",
                                                  "<|tool_call>call:read{",
                                                  "path:<|\"|>",
                                                  "<|\"|>",
                                                  "}<tool_call|>",
                                                  "<function=",
                                                  "read>",
                                                  "<parameter=",
                                                  "path>",
                                                  "</parameter>",
                                                  "</function>",
                                                  "\n",
                                                  " ",
                                                  "<think>",
                                                  "</think>",
                                                  "[TOOL_CALLS]",
                                                  "[ARGS]",
                                                  "[CALL_ID]",
                                                  ">>>",
                                                  "read\n",
                                                  "<|python_tag|>",
                                                  ";",
                                                  "x",
                                                  "\u00e9",
                                                  "\xff",
                                                  std::string(1, '\0'),
                                                  "True",
                                                  "'"};
  std::string text;
  const std::size_t n = random() % 24;
  for (std::size_t i = 0; i < n; ++i) text += kParts[random() % kParts.size()];
  return text;
}

TEST(ReplyParserRandom, loses_nothing_and_cuts_nothing_whatever_the_text_is) {
  for (RandomRounds rounds(6000); rounds.next();) {
    SCOPED_TRACE(rounds.seed());
    std::mt19937 random(rounds.seed());
    const std::string text = random_text(random);
    const std::size_t n_formats = call_formats().size();
    const std::size_t chosen = random() % (n_formats + 1);
    const CallFormat* format = chosen == n_formats ? &glm_form() : call_formats()[chosen];
    ReplyRules rules = rules_for(format);
    rules.thinking_open = random() % 4 == 0;
    rules.reasoning = static_cast<ReasoningFormat>(random() % 3);
    const ParsedReply whole = parse_reply(rules, text);
    std::vector<std::size_t> places;
    for (std::size_t i = 1; i < text.size(); ++i) {
      if (random() % 3 == 0) places.push_back(i);
    }
    ASSERT_EQ(stream(rules, cut(text, places)), whole) << format->name() << ": " << text;
    // Without calls every byte is there, and `none` changes none.
    if (whole.calls.empty() && rules.reasoning == ReasoningFormat::kNone) {
      ASSERT_EQ(whole.content, text) << format->name();
    }
  }
}

}  // namespace
}  // namespace ebb
