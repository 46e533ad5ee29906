#include "chat/call_grammar.h"

#include <algorithm>

#include "chat/reply_parser.h"
#include "grammar/grammar_match_test.h"
#include "gtest/gtest.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

CallChoice choice(bool parallel = true) {
  return {.tools = {{.name = "read",
                     .parameters =
                         Json::parse(R"({"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"}},
                        "required":["path"]})")},
                    {.name = "ls"}},
          .parallel = parallel};
}

GrammarMatch match(const CallFormat& format, const CallChoice& choice) {
  const auto made = call_grammar(format, choice);
  EXPECT_TRUE(made.ok()) << made.status().message();
  GrammarMatch grammar(made->grammar);
  EXPECT_EQ(grammar.error(), "");
  return grammar;
}

const std::vector<std::pair<const CallFormat*, std::string>>& good_calls() {
  static const std::vector<std::pair<const CallFormat*, std::string>> kGood = {
      {&hermes_calls(), "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\", \"n\": 5}}\n</tool_call>"},
      {&qwen_xml_calls(),
       "<tool_call>\n<function=read>\n<parameter=path>\na </p>\n\n</parameter\n</parameter>\n<parameter=n>\n5\n"
       "</parameter>\n</function>\n</tool_call>"},
      {&granite_calls(), "<|tool_call|>[{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}]"},
      {&gemma_calls(), "<|tool_call>call:read{path:<|\"|>a, }b<|\"|>,n:5}<tool_call|>"},
      {&harmony_calls(), "<|channel|>commentary to=functions.read <|constrain|>json<|message|>{\"path\": \"a\"}"},
      {&python_calls(), "<|tool_call_start|>[read(path=\"a, (b\", n=5)]<|tool_call_end|>"},
      {&functionary_calls(), ">>>read\n{\"path\": \"a >>>ls\"}"},
      {&llama3_calls(), "{\"name\": \"read\", \"parameters\": {\"path\": \"a\"}}"},
      {&mistral_list_calls(),
       "[TOOL_CALLS][{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}, \"id\": \"abcDEF123\"}]"},
      {&mistral_named_calls(), "[TOOL_CALLS]read[ARGS]{\"path\": \"a\"}"},
      {&mistral_named_id_calls(), "[TOOL_CALLS]read[CALL_ID]abcDEF123[ARGS]{\"path\": \"a\"}"},
  };
  return kGood;
}

TEST(CallGrammar, takes_the_calls_that_the_reader_reads) {
  EXPECT_EQ(good_calls().size(), call_formats().size());
  for (const auto& [format, text] : good_calls()) {
    EXPECT_TRUE(match(*format, choice()).matches(text)) << text;
    const ParsedReply reply = parse_reply({.calls = format, .tools = choice().tools}, text);
    ASSERT_EQ(reply.calls.size(), 1U) << text;
    EXPECT_EQ(reply.calls[0].name, "read");
    EXPECT_TRUE(reply.calls[0].complete);
    EXPECT_TRUE(Json::parse(reply.calls[0].arguments).contains("path"));
    EXPECT_EQ(reply.content, "");
  }
}

TEST(CallGrammar, refuses_other_text_other_tools_and_other_arguments) {
  const auto refused = [](const CallFormat& format, const std::string& text) {
    EXPECT_FALSE(match(format, choice()).matches(text)) << text;
  };
  refused(hermes_calls(), "Let me see.");
  refused(hermes_calls(), "<tool_call>\n{\"name\": \"rm\", \"arguments\": {}}\n</tool_call>");
  refused(hermes_calls(), "<tool_call>\n{\"name\": \"read\", \"arguments\": {}}\n</tool_call>");
  refused(hermes_calls(), "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": 5}}\n</tool_call>");
  refused(qwen_xml_calls(),
          "<tool_call>\n<function=read>\n<parameter=path>\na\n</parameter>\n<parameter=n>\nfive\n</parameter>\n"
          "</function>\n</tool_call>");
  refused(qwen_xml_calls(), "<tool_call>\n<function=read>\n</function>\n</tool_call>");
  refused(llama3_calls(), "{\"name\": \"read\", \"parameters\": {}}");
  refused(mistral_named_id_calls(), "[TOOL_CALLS]read[CALL_ID]abc[ARGS]{\"path\": \"a\"}");
}

TEST(CallGrammar, allows_several_calls_only_where_asked_and_possible) {
  const std::string one = "<tool_call>\n{\"name\": \"ls\", \"arguments\": {}}\n</tool_call>";
  EXPECT_TRUE(match(hermes_calls(), choice()).matches(one + "\n" + one));
  EXPECT_FALSE(match(hermes_calls(), choice(false)).matches(one + "\n" + one));
  EXPECT_TRUE(match(mistral_named_calls(), choice()).matches("[TOOL_CALLS]ls[ARGS]{}[TOOL_CALLS]ls[ARGS]{}"));
  EXPECT_FALSE(llama3_calls().allows_parallel());
}

TEST(CallGrammar, forces_the_named_function) {
  CallChoice only = choice();
  only.only = "ls";
  EXPECT_TRUE(match(llama3_calls(), only).matches("{\"name\": \"ls\", \"parameters\": {}}"));
  EXPECT_FALSE(match(llama3_calls(), only).matches("{\"name\": \"read\", \"parameters\": {\"path\": \"a\"}}"));
  only.only = "rm";
  EXPECT_EQ(call_grammar(llama3_calls(), only).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(call_grammar(llama3_calls(), {}).status().code(), Code::kInvalidArgument);
}

TEST(CallGrammar, arguments_are_an_object_and_its_keys_those_of_the_schema) {
  for (const char* schema : {"null", "{}", R"({"type":"object"})", R"({"properties":{}})", R"({"$schema":"x"})"}) {
    const CallChoice none{.tools = {{.name = "now", .parameters = Json::parse(schema)}}};
    EXPECT_TRUE(
        match(hermes_calls(), none).matches("<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"))
        << schema;
    for (const char* arguments : {"5", "[]", "\"a\"", R"({"any": 1})"}) {
      EXPECT_FALSE(
          match(hermes_calls(), none)
              .matches(fmt::format("<tool_call>\n{{\"name\": \"now\", \"arguments\": {}}}\n</tool_call>", arguments)))
          << schema << " " << arguments;
    }
  }
  const CallChoice free{.tools = {{.name = "now", .parameters = {{"additionalProperties", true}}}}};
  EXPECT_TRUE(match(hermes_calls(), free)
                  .matches("<tool_call>\n{\"name\": \"now\", \"arguments\": {\"any\": 1}}\n</tool_call>"));
}

TEST(CallGrammar, of_a_tool_that_takes_anything_any_keys_come) {
  const CallChoice any{.tools = {{.name = "f", .parameters = {{"type", "object"}, {"additionalProperties", true}}}}};
  EXPECT_TRUE(match(qwen_xml_calls(), any)
                  .matches("<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n<parameter=b>\n5\n</parameter>\n"
                           "</function>\n</tool_call>"));
  EXPECT_TRUE(match(gemma_calls(), any).matches("<|tool_call>call:f{a:<|\"|>x<|\"|>,b:[5]}<tool_call|>"));
  EXPECT_TRUE(match(python_calls(), any).matches("<|tool_call_start|>[f(a=\"x\", b=5)]<|tool_call_end|>"));
  EXPECT_TRUE(match(python_calls(), any).matches("<|tool_call_start|>[f()]<|tool_call_end|>"));
}

TEST(CallGrammar, a_key_that_no_reader_could_tell_from_what_stands_around_it_is_refused) {
  const auto with_key = [](const char* key) {
    return CallChoice{.tools = {{.name = "f", .parameters = {{"properties", {{key, {{"enum", {1}}}}}}}}}};
  };
  for (const char* key : {"a b", "a=b", "q\"t", "a,b", "f(x)"}) {
    EXPECT_EQ(call_grammar(python_calls(), with_key(key)).status().code(), Code::kUnsupported) << key;
  }
  EXPECT_EQ(call_grammar(gemma_calls(), with_key("a:b")).status().code(), Code::kUnsupported);
  EXPECT_TRUE(call_grammar(python_calls(), with_key("-n")).ok());
  EXPECT_TRUE(call_grammar(gemma_calls(), with_key("a b")).ok());
}

TEST(CallGrammar, begins_with_the_mark_that_the_format_names) {
  for (const auto& [format, text] : good_calls()) {
    EXPECT_TRUE(text.starts_with(format->forced_opener())) << text;
    EXPECT_FALSE(format->marks().empty());
  }
}

TEST(CallGrammar, leaves_text_free_up_to_the_mark_where_calls_may_come) {
  CallChoice may = choice();
  may.required = false;
  const std::string call = "<tool_call>\n{\"name\": \"ls\", \"arguments\": {}}\n</tool_call>";
  GrammarMatch grammar = match(hermes_calls(), may);
  for (const std::string text :
       {"", "Any text.", "a < b, <tool <tool_cal", "{\"name\": 5}", "<think>hm</think>\n\nYes."}) {
    EXPECT_TRUE(grammar.matches(text)) << text;
    EXPECT_TRUE(grammar.matches(text + call)) << text;
    EXPECT_TRUE(grammar.matches(text + call + "\n" + call + "\n")) << text;
    EXPECT_FALSE(grammar.matches(text + "<tool_call>")) << text;
    EXPECT_FALSE(grammar.matches(text + "<tool_call> tags are used")) << text;
    EXPECT_FALSE(grammar.matches(text + call + "more")) << text;
  }
  EXPECT_TRUE(grammar.matches("<<tool_call>\n{\"name\": \"ls\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_EQ(call_grammar(llama3_calls(), may)->grammar, "");
}

TEST(CallGrammar, allows_json_instead_of_calls_where_both_are_asked_for) {
  CallChoice may = choice();
  may.required = false;
  may.content = Json::parse(R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]})");
  may.thinking = AnswerThinking{};
  GrammarMatch grammar = match(hermes_calls(), may);
  EXPECT_TRUE(grammar.matches("{\"a\": 5}"));
  EXPECT_TRUE(grammar.matches("<think>Hm.</think>{\"a\": 5}"));
  EXPECT_TRUE(grammar.matches("<tool_call>\n{\"name\": \"ls\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_FALSE(grammar.matches("{\"b\": 5}"));
  EXPECT_FALSE(grammar.matches("a"));
}

TEST(CallGrammar, lets_thinking_come_first_and_end_with_its_mark_or_a_call) {
  const std::string call = "<tool_call>\n{\"name\": \"ls\", \"arguments\": {}}\n</tool_call>";
  CallChoice must = choice();
  must.thinking = AnswerThinking{};
  GrammarMatch may_think = match(hermes_calls(), must);
  EXPECT_TRUE(may_think.matches(call));
  EXPECT_TRUE(may_think.matches("<think>\nLook < there.</thin\n</think>\n\n" + call));
  EXPECT_TRUE(may_think.matches("<think>" + call));
  EXPECT_FALSE(may_think.matches("Hm.</think>" + call));
  EXPECT_FALSE(may_think.matches("<think>Hm.</think>"));
  EXPECT_FALSE(may_think.matches("<think>Hm.</think>No." + call));
  must.thinking->is_open = true;
  GrammarMatch thinks = match(hermes_calls(), must);
  EXPECT_TRUE(thinks.matches("Hm.</think>\n\n" + call));
  EXPECT_TRUE(thinks.matches("Hm." + call));
  EXPECT_FALSE(thinks.matches("Hm.</think>\n\nHm."));
  // No mark of its own tells where the call begins.
  GrammarMatch bare = match(llama3_calls(), must);
  EXPECT_TRUE(bare.matches("{}</think>{\"name\": \"ls\", \"parameters\": {}}"));
  EXPECT_FALSE(bare.matches("{}{\"name\": \"ls\", \"parameters\": {}}"));
}

TEST(CallGrammar, lists_what_a_tools_schema_asks_for_and_is_not_enforced) {
  const CallChoice odd{.tools = {{.name = "t", .parameters = Json::parse(R"({"properties":{"a":{"not":{}}}})")}}};
  EXPECT_EQ(call_grammar(hermes_calls(), odd)->unsupported, std::vector<std::string>{"not at tool t/a"});
  const CallChoice bad{.tools = {{.name = "t", .parameters = Json::parse(R"({"type":"objekt"})")}}};
  EXPECT_NE(call_grammar(hermes_calls(), bad).status().message().find("tool t"), std::string::npos);
}

TEST(CallGrammar, refuses_tools_with_too_many_properties_in_all_forms) {
  Json properties = Json::object();
  for (int i = 0; i < 11000; ++i) properties.push_back({std::to_string(i), {{"type", "string"}}});
  const CallChoice large{.tools = {{.name = "t", .parameters = {{"properties", properties}}}}};
  for (const CallFormat* format : call_formats()) {
    EXPECT_EQ(call_grammar(*format, large).status().code(), Code::kInvalidArgument) << format->name();
  }
}

TEST(CallFormats, are_found_by_what_a_template_teaches) {
  const auto found = [](std::string_view source) {
    const CallFormat* format = find_call_format(source);
    return format == nullptr ? "none" : format->name();
  };
  EXPECT_EQ(found("'<tool_call>\\n{\"name\": \"' + n + '\", \"arguments\": '"), "hermes");
  EXPECT_EQ(found("<tool_call>\\n<function=' + n + '>\\n<parameter=' + k + '>"), "qwen_xml");
  EXPECT_EQ(found("'<|start_header_id|>' {\"name\": \"' + n + '\", ' '\"parameters\": '"), "llama3");
  EXPECT_EQ(found("\"[TOOL_CALLS][\" {\"name\""), "mistral_list");
  EXPECT_EQ(found("'[TOOL_CALLS]' + n + '[ARGS]'"), "mistral_named");
  EXPECT_EQ(found("'[TOOL_CALLS]' + n + '[CALL_ID]' + i + '[ARGS]'"), "mistral_named_id");
  EXPECT_EQ(found("respond with <|tool_call|> followed by a JSON list"), "granite");
  EXPECT_EQ(found("'<|tool_call>call:' + n + '{' + a + '}<tool_call|>'"), "gemma");
  EXPECT_EQ(found("' to=functions.' + n + '<|channel|>commentary json<|message|>' + a + '<|call|>'"), "harmony");
  EXPECT_EQ(found("'>>>all\\n' + message['content']"), "functionary");
  EXPECT_EQ(found("'<|tool_call_start|>[' + calls + ']<|tool_call_end|>'"), "python");
  // What is read as its template writes it.
  EXPECT_EQ(found("<tool_call>{{ n }}<arg_key>k</arg_key> arguments"), "none");
  EXPECT_EQ(found("within <tool_call> tags, arguments <tool_calls>["), "none");
  EXPECT_EQ(found("{{ message.content }}"), "none");
}

TEST(CallGrammar, gpt_oss_thinks_and_then_calls_or_says_json_in_its_final_message) {
  const std::string source = "<|channel|>analysis<|message|> <|end|> <|channel|>final<|message|>";
  CallChoice may = choice(false);
  may.required = false;
  may.content = {{"type", "boolean"}};
  may.content_openers = answer_openers(find_dress(source));
  may.thinking = AnswerThinking{.tags = *find_think_tags(source)};
  GrammarMatch grammar = match(harmony_calls(), may);
  const std::string thought = "<|channel|>analysis<|message|>A.<|end|><|start|>assistant";
  const std::string call = "<|channel|>commentary to=functions.read <|constrain|>json<|message|>{\"path\": \"a\"}";
  for (const std::string& begin : {std::string(), thought}) {
    EXPECT_TRUE(grammar.matches(begin + call));
    EXPECT_TRUE(grammar.matches(begin + "<|channel|>final<|message|>true"));
    EXPECT_FALSE(grammar.matches(begin + "true"));
  }
}

}  // namespace
}  // namespace ebb
