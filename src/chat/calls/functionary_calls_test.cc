// Functionary 3.2, whose prompts end in the middle of the mark that a reply begins with: read, streamed, forced.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chat/call_grammar.h"
#include "chat/reply_parser_test.h"
#include "chat/taught_calls.h"
#include "grammar/grammar_match_test.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

// Written for these tests, after what the model's own template writes.
ChatTemplate functionary_template() {
  return ChatTemplate::compile(
             "<|start_header_id|>system<|end_header_id|>\n\nSay >>>all\nor name one of {{ tools | tojson if tools "
             "}}<|eot_id|>"
             "{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{% if m.role == 'assistant' "
             "%}{% if m.content %}{{ '>>>all\n' + m.content }}{% endif %}{% for c in m.tool_calls or [] %}{{ '>>>' + "
             "c.function.name + '\n' + c.function.arguments }}{% endfor %}{% else %}{{ m.content }}{% endif %}"
             "<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n>>>"
             "{% endif %}")
      .value();
}

std::vector<Tool> functionary_tools() {
  return {
      {.name = "read",
       .parameters = Json::parse(R"({"type":"object","properties":{"path":{"type":"string"}},"required":["path"]})")},
      {.name = "list.all"}};
}

ReplyRules functionary_rules() {
  const std::string source = functionary_template().source();
  return {.dress = find_dress(source),
          .begun = find_begun_mark(source),
          .calls = &functionary_calls(),
          .tools = functionary_tools(),
          .id_seed = 7};
}

void expect_functionary(const std::string& text, const std::string& content, const std::vector<ExpectedCall>& calls) {
  SCOPED_TRACE(text);
  expect_reply(parse_reply(functionary_rules(), text), content, calls);
  for (std::size_t n = 0; n <= text.size(); ++n) {
    const std::string part = text.substr(0, n);
    EXPECT_EQ(parse_reply_by_bytes(functionary_rules(), part), parse_reply(functionary_rules(), part)) << part;
  }
}

TEST(FunctionaryCalls, are_taught_by_its_template) {
  const ChatTemplate chat_template = functionary_template();
  const TaughtCalls taught = TaughtCalls::find(chat_template, {});
  EXPECT_EQ(taught.format().name(), "functionary");
  EXPECT_TRUE(taught.shows_tools());
  EXPECT_TRUE(reads_back(chat_template, {}, functionary_calls()));
}

TEST(FunctionaryCalls, what_is_for_all_is_said) {
  expect_functionary("all\nHello.\nYou?", "Hello.\nYou?", {});
  expect_functionary("all\n", "", {});
  expect_functionary("all\nOne.>>>all\nTwo.", "One.Two.", {});
  expect_functionary("all\n>>> 1 + 1\n2\n>>>x\n>>", ">>> 1 + 1\n2\n>>>x\n>>", {});
  ReplyRules without_tools = functionary_rules();
  without_tools.calls = nullptr;
  without_tools.tools.clear();
  EXPECT_EQ(parse_reply(without_tools, "all\nHello >>>read\n{}").content, "Hello >>>read\n{}");
  EXPECT_EQ(parse_reply_by_bytes(without_tools, "all\nHello").content, "Hello");
}

TEST(FunctionaryCalls, what_is_for_nobody_is_said_as_it_stands) {
  expect_functionary("Hello.", "Hello.", {});
  expect_functionary("al", "al", {});
  expect_functionary("", "", {});
  expect_functionary("read\nme first", "read\nme first", {});
  expect_functionary(">>>all\nHello.", "Hello.", {});
}

TEST(FunctionaryCalls, come_first_behind_text_and_several_at_once) {
  expect_functionary("read\n{\"path\": \"a\"}", "", {{"read", "{\"path\": \"a\"}"}});
  expect_functionary(">>>read\n{\"path\": \"a\"}", "", {{"read", "{\"path\": \"a\"}"}});
  expect_functionary("all\nI look.\n>>>read\n{\"path\": \"a\"}>>>list.all\n{}\n>>>read\n {\"path\": \"b\"}\n",
                     "I look.", {{"read", "{\"path\": \"a\"}"}, {"list.all", "{}"}, {"read", "{\"path\": \"b\"}"}});
  expect_functionary("list.all\n{}>>>all\nDone.", "Done.", {{"list.all", "{}"}});
}

TEST(FunctionaryCalls, hold_marks_quotes_and_line_breaks) {
  const std::string arguments = "{\"path\": \"say \\\"it\\\" >>>all\\n>>>read\n{} \\\\\"}";
  expect_functionary("read\n" + arguments + ">>>list.all\n{}", "", {{"read", arguments}, {"list.all", "{}"}});
}

TEST(FunctionaryCalls, that_break_off_are_not_complete) {
  expect_functionary("read\n{\"path\": \"a", "", {{"read", "{\"path\": \"a", false}});
  expect_functionary("read\n{oops} and on", "", {{"read", "{oops} and on", false}});
}

GrammarMatch functionary_match(const CallChoice& choice) {
  const auto made = call_grammar(functionary_calls(), choice);
  EXPECT_TRUE(made.ok()) << made.status().message();
  GrammarMatch grammar(made->grammar);
  EXPECT_EQ(grammar.error(), "");
  return grammar;
}

CallChoice functionary_choice(bool required) {
  return {.tools = functionary_tools(),
          .required = required,
          .content_openers = answer_openers(find_dress(functionary_template().source()), ">>>"),
          .begun = ">>>"};
}

TEST(FunctionaryCalls, are_forced_from_the_middle_of_their_mark_on) {
  GrammarMatch grammar = functionary_match(functionary_choice(true));
  EXPECT_TRUE(grammar.matches("read\n{\"path\": \"a >>>\"}"));
  EXPECT_TRUE(grammar.matches("list.all\n{}>>>read\n{\"path\": \"a\"}"));
  for (const char* text : {"all\nHello", ">>>list.all\n{}", "rm\n{}", "read\n{}", "list.all\n{}list.all\n{}"}) {
    EXPECT_FALSE(grammar.matches(text)) << text;
  }
  CallChoice one = functionary_choice(true);
  one.parallel = false;
  EXPECT_FALSE(functionary_match(one).matches("list.all\n{}>>>list.all\n{}"));
}

TEST(FunctionaryCalls, may_come_instead_of_text_and_behind_it) {
  GrammarMatch grammar = functionary_match(functionary_choice(false));
  for (const char* text :
       {"all\nHello", "all\n>>> 1 + 1", "all\nI look.>>>list.all\n{}>>>list.all\n{}", "list.all\n{}"}) {
    EXPECT_TRUE(grammar.matches(text)) << text;
  }
  for (const char* text : {"Hello", "all\nI look.>>>read\n{}", "all\nI look.>>>lost\n{}", "read\n{}"}) {
    EXPECT_FALSE(grammar.matches(text)) << text;
  }
  CallChoice json = functionary_choice(false);
  json.content = {{"type", "boolean"}};
  GrammarMatch either = functionary_match(json);
  EXPECT_TRUE(either.matches("all\ntrue"));
  EXPECT_TRUE(either.matches("list.all\n{}"));
  EXPECT_FALSE(either.matches("true"));
}

TEST(FunctionaryCalls, behind_an_answer_that_the_client_began_have_their_whole_mark) {
  CallChoice goes_on = functionary_choice(false);
  goes_on.begun = {};
  goes_on.content_openers = {};
  EXPECT_TRUE(functionary_match(goes_on).matches("and I look.>>>list.all\n{}"));
  goes_on.required = true;
  EXPECT_TRUE(functionary_match(goes_on).matches(">>>list.all\n{}"));
  EXPECT_FALSE(functionary_match(goes_on).matches("list.all\n{}"));
}

}  // namespace
}  // namespace ebb
