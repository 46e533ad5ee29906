#include "chat/reply_parser.h"

#include <set>

#include "chat/reply_parser_test.h"
#include "gtest/gtest.h"

namespace ebb {
namespace {

ParsedReply parse(const CallFormat& calls, std::string_view text) { return parse_reply(rules_for(&calls), text); }

TEST(ReplyParser, sets_thinking_apart) {
  const ParsedReply reply = parse_reply({}, "<think>\nThe file  decides.\n\n</think>\n\nRead it.\n");
  EXPECT_EQ(reply.reasoning, "The file  decides.");
  EXPECT_EQ(reply.content, "Read it.\n");
  EXPECT_EQ(parse_reply({}, " \n<think></think>x").content, "x");
  EXPECT_EQ(parse_reply({}, "<think>cut off").reasoning, "cut off");
}

TEST(ReplyParser, begins_inside_thinking_where_the_prompt_opened_it) {
  const ReplyRules open{.thinking_open = true};
  EXPECT_EQ(parse_reply(open, "\nWhy?\n</think>\n\nSo."), (ParsedReply{.reasoning = "Why?", .content = "So."}));
  EXPECT_EQ(parse_reply(open, "<think>\nWhy?</think>So."), (ParsedReply{.reasoning = "Why?", .content = "So."}));
  EXPECT_EQ(parse_reply(open, "no end"), (ParsedReply{.reasoning = "no end"}));
}

TEST(ReplyParser, leaves_marks_of_thinking_inside_the_answer_alone) {
  const std::string text = "Use <think> and </think>, I say.";
  EXPECT_EQ(parse_reply({}, text), (ParsedReply{.content = text}));
  EXPECT_EQ(parse_reply({.think = std::nullopt}, "<think>a</think>"), (ParsedReply{.content = "<think>a</think>"}));
}

TEST(ReplyParser, keeps_thinking_in_the_content_where_asked) {
  const std::string text = "<think>\nWhy?\n</think>\n\nSo. ";
  EXPECT_EQ(parse_reply({.reasoning = ReasoningFormat::kNone}, text), (ParsedReply{.content = text}));
  EXPECT_EQ(parse_reply({.reasoning = ReasoningFormat::kDeepseekLegacy}, text),
            (ParsedReply{.reasoning = "Why?", .content = text}));
}

TEST(ReplyParser, names_the_reasoning_formats) {
  EXPECT_EQ(reasoning_format_named("none").value(), ReasoningFormat::kNone);
  EXPECT_EQ(reasoning_format_named("auto").value(), ReasoningFormat::kDeepseek);
  EXPECT_EQ(reasoning_format_named("deepseek").value(), ReasoningFormat::kDeepseek);
  EXPECT_EQ(reasoning_format_named("deepseek-legacy").value(), ReasoningFormat::kDeepseekLegacy);
  EXPECT_EQ(reasoning_format_named("loud").status().code(), Code::kInvalidArgument);
}

TEST(ReplyParser, reads_hermes_calls) {
  const auto& hermes = hermes_calls();
  expect_reply(parse(hermes,
                     "Let me look.\n\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a}\\\"b\"}}\n"
                     "</tool_call>\n<tool_call>\n{\"name\":\"ls\",\"arguments\":{}}\n</tool_call>\n"),
               "Let me look.", {{"read", "{\"path\": \"a}\\\"b\"}"}, {"ls", "{}"}});
  // Arguments first, none at all, as a string, null; other keys; the last brace forgotten.
  expect_reply(
      parse(hermes, "<tool_call>{\"arguments\": {\"n\": 1e3}, \"id\": 5, \"name\": \"r\\u0065ad\"}</tool_call>"), "",
      {{"read", "{\"n\": 1e3}"}});
  expect_reply(parse(hermes, "<tool_call>{\"name\": \"ls\"}</tool_call>"), "", {{"ls", "{}"}});
  expect_reply(
      parse(hermes, "<tool_call>{\"name\": \"ls\", \"arguments\": \"{\\\"a\\\": \\\"\\u00e9\\\"}\"}</tool_call>"), "",
      {{"ls", "{\"a\": \"\u00e9\"}"}});
  expect_reply(parse(hermes, "<tool_call>{\"name\": \"ls\", \"arguments\": null}</tool_call>"), "", {{"ls", "{}"}});
  expect_reply(parse(hermes, "<tool_call>{\"name\": \"ls\", \"arguments\": {}\n</tool_call>"), "", {{"ls", "{}"}});
  expect_reply(parse(hermes, "<tool_call>{\"name\": \"ls\", \"arguments\": {}}\n</tool_call>\n and more"),
               "\n and more", {{"ls", "{}"}});
  // A raw line break inside a string does not hide the end.
  expect_reply(parse(hermes, "<tool_call>{\"name\": \"ls\", \"arguments\": {\"a\": \"x\ny\"}}</tool_call>"), "",
               {{"ls", "{\"a\": \"x\ny\"}"}});
}

TEST(ReplyParser, gives_out_what_is_no_call_as_content) {
  const auto& hermes = hermes_calls();
  for (const std::string text :
       {"<tool_call>I would call read</tool_call>", "<tool_call>\n{\"nome\": 1}\n</tool_call>", "a <tool_call",
        " \n<tool_", "<tool_call>{\"name\": \"read\", \"argu", "<tool_call>{\"name\": \"\", \"arguments\": {}}",
        "<tool_call>[]", "<tool_call>{\"name\": 7, \"arguments\": {}}</tool_call>", "<tool_call>{\"arguments\": {]"}) {
    expect_reply(parse(hermes, text), text, {});
  }
  expect_reply(parse(hermes, "<tool_call>\n<tool_call>{\"name\": \"ls\"}</tool_call>"), "<tool_call>", {{"ls", "{}"}});
  expect_reply(parse(hermes, "<tool_call>{\"x\": <tool_call>{\"name\": \"ls\"}</tool_call>"),
               "<tool_call>{\"x\":", {{"ls", "{}"}});
  expect_reply(parse(hermes, "<tool_call>{\"name\": \"ls\"}}</tool_call>"), "}</tool_call>", {{"ls", "{}"}});
}

TEST(ReplyParser, passes_on_arguments_that_break_off_or_are_no_json) {
  const auto& hermes = hermes_calls();
  expect_reply(parse(hermes, "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a"), "",
               {{"read", "{\"path\": \"a", false}});
  expect_reply(parse(hermes, "<tool_call>{\"name\": \"read\", \"arguments\": {path: <a>}}</tool_call> x"), " x",
               {{"read", "{path: <a>}}", false}});
}

TEST(ReplyParser, a_call_that_is_only_thought_of_is_thinking) {
  const std::string call = "<tool_call>{\"name\": \"ls\"}</tool_call>";
  const ParsedReply reply = parse(hermes_calls(), "<think>I could say " + call + ", or not.\n</think>\nNo.");
  EXPECT_EQ(reply.reasoning, "I could say " + call + ", or not.");
  EXPECT_EQ(reply.content, "No.");
  EXPECT_TRUE(reply.calls.empty());
  const ParsedReply both = parse(hermes_calls(), "<think>Say " + call + " and " + call + ".</think>" + call);
  EXPECT_EQ(both.reasoning, "Say " + call + " and " + call + ".");
  EXPECT_EQ(both.calls.size(), 1U);
  // What closes thinking inside of what a call says is the call's.
  const ParsedReply inside = parse(
      hermes_calls(), "<think>So.<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"</think>\"}}</tool_call>");
  EXPECT_EQ(inside.reasoning, "So.");
  ASSERT_EQ(inside.calls.size(), 1U);
  EXPECT_EQ(nlohmann::ordered_json::parse(inside.calls[0].arguments)["path"], "</think>");
}

TEST(ReplyParser, ends_thinking_with_a_call) {
  const ParsedReply reply = parse(hermes_calls(), "<think>I read.\n<tool_call>{\"name\": \"ls\"}</tool_call>");
  EXPECT_EQ(reply.reasoning, "I read.");
  expect_reply(reply, "", {{"ls", "{}"}});
  EXPECT_EQ(parse(hermes_calls(), "<think>Say <tool_call>? No.</think>x"),
            (ParsedReply{.reasoning = "Say <tool_call>? No.", .content = "x"}));
}

TEST(ReplyParser, reads_xml_calls_by_the_tools_schema) {
  const auto& xml = qwen_xml_calls();
  expect_reply(
      parse(xml,
            "Look:\n<tool_call>\n<function=read>\n<parameter=path>\na \"b\"\n\n</parameter>\n<parameter=n>\n5\n"
            "</parameter>\n<parameter=all>\nTrue\n</parameter>\n<parameter=tags>\n['x', 1, None]\n</parameter>\n"
            "</function>\n</tool_call>"),
      "Look:", {{"read", R"({"path":"a \"b\"\n","n":5,"all":true,"tags":["x",1,null]})"}});
  // Without the outer tag; values that speak of tags; types that do not fit; unknown keys are strings.
  expect_reply(parse(xml,
                     "<function=read>\n<parameter=path>\n</parameter> <parameter>\n</parameter>\n<parameter=n>\nfive\n"
                     "</parameter>\n<parameter=new>\n5\n</parameter>\n</function>\n</tool_call>"),
               "", {{"read", R"({"path":"</parameter> <parameter>","n":"five","new":"5"})"}});
  expect_reply(parse(xml,
                     "<tool_call><function=read><parameter=any>{\"a\": 1}</parameter><parameter=maybe>None</parameter>"
                     "</function></tool_call>"),
               "", {{"read", R"({"any":{"a": 1},"maybe":null})"}});
  expect_reply(parse(xml, "<function=ls>\n</function>\n<function=ls></function>"), "", {{"ls", "{}"}, {"ls", "{}"}});
  expect_reply(parse(xml, "<tool_call>\n<function=read>\n<parameter=path>\nab\n</para"), "",
               {{"read", "{\"path\":\"ab", false}});
  for (const std::string text :
       {"<tool_call>\n{\"name\": \"ls\"}", "<function=a b\n>", "<function=ls>text</function>"}) {
    expect_reply(parse(xml, text), text, {});
  }
}

TEST(ReplyParser, reads_glm_calls) {
  const auto& glm = glm_form();
  expect_reply(
      parse(glm,
            "So:\n<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a </b>\n</arg_value>\n<arg_key>n</arg_key>"
            "<arg_value>5</arg_value></tool_call><tool_call>ls</tool_call>"),
      "So:", {{"read", R"({"path":"a </b>\n","n":5})"}, {"ls", "{}"}});
  expect_reply(parse(glm, "<tool_call>read<arg_key>path</arg_key><arg_value>a</arg_va"), "",
               {{"read", R"({"path":"a)", false}});
  for (const std::string text :
       {"<tool_call>{\"name\": 1}", "<tool_call>read it</tool_call>", "<tool_call></tool_call>"}) {
    expect_reply(parse(glm, text), text, {});
  }
}

TEST(ReplyParser, what_a_form_does_not_say_stays_in_arguments_or_text) {
  const auto& granite = granite_calls();
  // No JSON, a missing brace, and the end.
  expect_reply(parse(granite, "<|tool_call|>[{\"name\": \"ls\", \"arguments\": {'a': 1}}]"), "",
               {{"ls", "{'a': 1}}]", false}});
  expect_reply(parse(granite, "<|tool_call|>[{\"name\": \"ls\", \"arguments\": {}]"), "", {{"ls", "{}"}});
  expect_reply(parse(granite, "<|tool_call|>[{\"name\": \"ls\", \"arguments\": {}"), "", {{"ls", "{}"}});
  const auto& glm = glm_form();
  expect_reply(parse(glm, "<tool_call>read<arg_key>file path</arg_key><arg_value>x</arg_value></tool_call>"), "",
               {{"read", R"({"file path":"x"})"}});
  expect_reply(parse(glm, "<tool_call>read<arg_key>pa"), "", {{"read", "{", false}});
  expect_reply(parse(glm, "<tool_call></tool_call>\n</tool_call>"), "<tool_call></tool_call>\n</tool_call>", {});
  // White space behind what may be a value's end is not held for ever.
  const std::string value = "x</arg_value><" + std::string(200'000, ' ');
  ReplyParser parser(rules_for(&glm));
  (void)parser.push("<tool_call>read<arg_key>path</arg_key><arg_value>" + value);
  EXPECT_LT(parser.n_held(), 1000U);
  expect_reply(parse(python_calls(), "<|tool_call_start|>[read(n=1,,path='b')]<|tool_call_end|>"), "",
               {{"read", "n=1,,path='b'", false}});
  expect_reply(parse(gemma_calls(), "<|tool_call>call:read{,n:1}<tool_call|>"), "", {{"read", ",n:1", false}});
}

TEST(ReplyParser, reads_gpt_oss_messages) {
  const std::string source = "<|channel|>analysis<|message|> <|end|> <|channel|>final<|message|>";
  ReplyRules rules = rules_for(&harmony_calls());
  rules.think = find_think_tags(source);
  rules.dress = find_dress(source);
  const ParsedReply reply =
      parse_reply(rules,
                  "<|channel|>analysis<|message|>A.<|end|><|start|>assistant<|channel|>commentary<|message|>So.<|end|>"
                  "<|start|>assistant<|channel|>analysis<|message|> B.<|end|><|start|>assistant<|channel|>commentary "
                  "to=functions.read "
                  "<|constrain|>json<|message|>{\"path\": \"a\"}<|call|>");
  EXPECT_EQ(reply.reasoning, "A. B.");
  EXPECT_EQ(reply.content, "So.");
  ASSERT_EQ(reply.calls.size(), 1U);
  EXPECT_EQ(reply.calls[0].arguments, "{\"path\": \"a\"}");
  EXPECT_EQ(parse_reply(rules, "<|channel|>final <|constrain|>json<|message|>{}").content, "{}");
  EXPECT_EQ(parse_reply(rules, "<|channel|>final<|message|>Done.<|return|>").content, "Done.");
}

TEST(ReplyParser, reads_llama3_calls) {
  const auto& llama = llama3_calls();
  expect_reply(parse(llama, "{\"name\": \"read\", \"parameters\": {\"path\": \"a\"}}"), "",
               {{"read", "{\"path\": \"a\"}"}});
  expect_reply(parse(llama,
                     "\n{\"type\": \"function\", \"name\": \"ls\", \"parameters\": {}}; {\"name\": \"ls\", "
                     "\"parameters\": {}}"),
               "", {{"ls", "{}"}, {"ls", "{}"}});
  expect_reply(parse(llama, "Hm. <|python_tag|>{\"name\": \"other\", \"parameters\": {}}"), "Hm.", {{"other", "{}"}});
  // JSON that is an answer, and objects that come later.
  for (const std::string text :
       {"{\"name\": \"Ann\", \"parameters\": {}}", "{\"age\": 5, \"name\": \"ls\", \"parameters\": {}}",
        "{\"name\": \"ls\"}", "So: {\"name\": \"ls\", \"parameters\": {}}", "{", "<|python_tag|>print(1)"}) {
    expect_reply(parse(llama, text), text, {});
  }
}

TEST(ReplyParser, streams_an_answer_in_json_that_is_no_call) {
  ReplyParser parser(rules_for(&llama3_calls()));
  (void)parser.push("{\"title\"");
  EXPECT_EQ(parser.n_held(), 0U);
}

TEST(ReplyParser, reads_mistral_calls_of_all_ages) {
  const auto& mistral = mistral_named_calls();
  expect_reply(parse(mistral,
                     "Yes.[TOOL_CALLS][{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}, \"id\": \"abc\"}, "
                     "{\"name\": \"ls\", \"arguments\": {}}]"),
               "Yes.", {{"read", "{\"path\": \"a\"}"}, {"ls", "{}"}});
  expect_reply(parse(mistral, "[TOOL_CALLS]read[ARGS]{\"path\": \"[\"}[TOOL_CALLS]ls[ARGS]{}"), "",
               {{"read", "{\"path\": \"[\"}"}, {"ls", "{}"}});
  expect_reply(parse(mistral, "[TOOL_CALLS]ls{}"), "", {{"ls", "{}"}});
  const ParsedReply own_id =
      parse(mistral, "[TOOL_CALLS]ls[CALL_ID]k3VdTz01q[ARGS]{}[TOOL_CALLS]ls[CALL_ID]k3VdTz01q[ARGS]{}");
  ASSERT_EQ(own_id.calls.size(), 2U);
  EXPECT_EQ(own_id.calls[0].id, "k3VdTz01q");
  EXPECT_NE(own_id.calls[1].id, "k3VdTz01q");  // given once only
  for (const std::string text :
       {"[TOOL_CALLS]", "[TOOL_CALLS]a b", "[TOOL_CALLS]ls[ARGS]7", "[TOOL_CALLS][1]", "[TOOL_CALLS]{}"}) {
    expect_reply(parse(mistral, text), text, {});
  }
}

TEST(ReplyParser, holds_back_what_may_be_a_marker_and_no_more) {
  ReplyParser parser(rules_for(&hermes_calls()));
  const auto content = [&](std::string_view piece) {
    std::string all;
    for (const ReplyDelta& delta : parser.push(piece)) all += delta.text;
    return all;
  };
  EXPECT_EQ(content("a <"), "a");
  EXPECT_EQ(content("b"), " <b");
  EXPECT_EQ(content("\n<tool_cal"), "");
  EXPECT_EQ(parser.n_held(), 10U);
  EXPECT_EQ(content("x"), "\n<tool_calx");
  EXPECT_EQ(content("<tool_call>{\"name\": \"read\", \"arguments\": "), "");
  EXPECT_EQ(parser.push("{"),
            (std::vector<ReplyDelta>{
                {.kind = ReplyDelta::Kind::kCallBegin, .text = "read", .call = 0, .id = CallIds(7).next()},
                {.kind = ReplyDelta::Kind::kCallArguments, .text = "{", .call = 0}}));
  EXPECT_EQ(content("\"path\": \"<"), "\"path\": \"<");
  EXPECT_EQ(parser.n_held(), 0U);

  ReplyParser plain({.think = std::nullopt});
  EXPECT_EQ(plain.push(" <tool_call"), (std::vector<ReplyDelta>{{.text = " <tool_call"}}));
}

TEST(ReplyParser, holds_back_no_more_than_its_limits) {
  ReplyParser parser(rules_for(&hermes_calls()));
  (void)parser.push("x<tool_call>{\"arguments\": {\"a\": \"");
  const std::string piece(std::size_t{1} << 16, 'y');
  std::string content;
  for (int i = 0; i < 40; ++i) {
    for (const ReplyDelta& delta : parser.push(piece)) content += delta.text;
    EXPECT_LE(parser.n_held(), CallLimits::kMaxHeldBytes);
  }
  EXPECT_EQ(content.size(), 40 * piece.size() + std::string_view("<tool_call>{\"arguments\": {\"a\": \"").size());

  ReplyParser spaces(rules_for(&hermes_calls()));
  (void)spaces.push("x" + std::string(100000, ' '));
  EXPECT_LE(spaces.n_held(), ReplyLimits::kMaxSpaceBytes);
}

TEST(ReplyParser, takes_hostile_text_in_bounded_work) {
  std::string nested;
  for (int i = 0; i < 20000; ++i) nested += "<tool_call>{\"a\": \"";
  EXPECT_EQ(parse(hermes_calls(), nested).content, nested);
}

TEST(ReplyParser, gives_every_call_an_id_of_its_own) {
  CallIds ids(3);
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = ids.next();
    EXPECT_TRUE(CallIds::is_id(id)) << id;
    EXPECT_TRUE(seen.insert(id).second);
  }
  ReplyRules rules = rules_for(&mistral_named_id_calls());
  rules.used_ids = {"k3VdTz01q"};
  EXPECT_NE(parse_reply(rules, "[TOOL_CALLS]ls[CALL_ID]k3VdTz01q[ARGS]{}").calls.at(0).id, "k3VdTz01q");
  EXPECT_NE(CallIds().next(), CallIds().next());
}

TEST(ReplyParser, gives_of_a_list_that_broke_off_the_beginning_of_an_object) {
  expect_reply(parse(gemma_calls(), "<|tool_call>call:read{n:16,o:{a:[1,2]},k:<|\"|>\n\nAt, x"), "",
               {{"read", R"({"n":16,"o":{"a":[1,2]})", false}});
  expect_reply(parse(python_calls(), "<|tool_call_start|>[read(n=1, path='a, b"), "", {{"read", R"({"n":1)", false}});
  expect_reply(parse(python_calls(), "<|tool_call_start|>[read(pa"), "", {{"read", "{", false}});
}

// LFM2.5's template does.
TEST(ReplyParser, reads_texts_whose_apostrophes_nobody_escaped) {
  expect_reply(
      parse(python_calls(), "<|tool_call_start|>[read(path='it's here', n=4), read(path='' , n=5)]<|tool_call_end|>"),
      "", {{"read", R"({"path":"it's here","n":4})", true}, {"read", R"({"path":"","n":5})", true}});
}

// By what the templates of these families say, their replies as their models write them.
TEST(ReplyParser, reads_what_stands_around_thinking_and_answers_of_other_families) {
  const auto read = [](const std::string& source, std::string_view text) {
    ReplyRules rules = rules_for(&hermes_calls());
    rules.think = find_think_tags(source);
    rules.dress = find_dress(source);
    return parse_reply(rules, text);
  };
  const std::string call = R"(<tool_call>{"name": "ls", "arguments": {}}</tool_call>)";
  const ParsedReply apriel = read(
      "say <thinking></thinking>, then [BEGIN FINAL RESPONSE]",
      "Here are my reasoning steps:\nmaybe " + call + " no\n[BEGIN FINAL RESPONSE]\nIt is 3.\n[END FINAL RESPONSE]");
  EXPECT_EQ(apriel.reasoning, "maybe " + call + " no");
  EXPECT_EQ(apriel.content, "It is 3.");
  EXPECT_TRUE(apriel.calls.empty());
  const ParsedReply granite = read("thoughts between <think></think>, response between <response></response>",
                                   "<think>It may be 3.</think>\n<response>It is 3.</response>");
  EXPECT_EQ(granite.reasoning, "It may be 3.");
  EXPECT_EQ(granite.content, "It is 3.");
  const std::string command = "<|START_THINKING|><|END_THINKING|><|START_RESPONSE|>{{ m }}<|END_RESPONSE|>";
  EXPECT_EQ(read(command, "<|START_THINKING|>3?<|END_THINKING|><|START_RESPONSE|>It is 3.<|END_RESPONSE|>").content,
            "It is 3.");
  EXPECT_EQ(read("<|START_TEXT|>{{ m }}<|END_TEXT|>", "<|START_TEXT|>It is 3.<|END_TEXT|>").content, "It is 3.");
  const ParsedReply minimax =
      read("{{ '<beginning_of_sentence>ai name=assistant\n' }}", "<think>\n3?\n</think>\n\nIt is 3.");
  EXPECT_EQ(minimax.reasoning, "3?");
  EXPECT_EQ(minimax.content, "It is 3.");
}

TEST(ReplyParser, finds_the_marks_of_thinking_in_a_template) {
  EXPECT_EQ(find_think_tags("{{ '<think>' + r + '</think>' }}")->open, "<think>");
  EXPECT_EQ(find_think_tags("[THINK]{{ r }}[/THINK]")->close, "[/THINK]");
  EXPECT_EQ(find_think_tags("<seed:think></seed:think>")->open, "<seed:think>");
  EXPECT_FALSE(find_think_tags("{{ m.content }}"));
}

}  // namespace
}  // namespace ebb
