#include "server/messages_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::HasSubstr;

Json chat_of(const char* body) { return read_messages_request(Json::parse(body)).value().chat; }
std::string error_of(const char* body) { return read_messages_request(Json::parse(body)).status().message(); }

TEST(MessagesRequest, results_of_tools_and_text_are_messages_each_in_its_place) {
  const Json said = chat_of(R"({"system":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"messages":[
      {"role":"user","content":"q"},
      {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},
        {"type":"redacted_thinking","data":"zz"},{"type":"text","text":"I "},{"type":"text","text":"read."},
        {"type":"tool_use","id":"1","name":"read","input":{"path":"a"}},{"type":"tool_use","id":"2","name":"list","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]},
        {"type":"tool_result","tool_use_id":"2","is_error":true,"content":"no"},{"type":"text","text":"e"},{"type":"text","text":"f"}]}]})")
      ["messages"];
  ASSERT_EQ(said.size(), 6U) << said;
  EXPECT_EQ(said[0], Json::parse(R"({"role":"system","content":"a\nb"})"));
  EXPECT_EQ(said[2]["reasoning_content"], "hm");
  EXPECT_EQ(said[2]["content"], "I read.");
  EXPECT_EQ(said[2]["tool_calls"][0]["function"]["arguments"], R"({"path":"a"})");
  EXPECT_EQ(said[2]["tool_calls"].size(), 2U);
  EXPECT_EQ(said[3], Json::parse(R"({"role":"tool","tool_call_id":"1","content":"c\nd"})"));
  EXPECT_EQ(said[4]["content"], "Error: no");
  EXPECT_EQ(said[5], Json::parse(R"({"role":"user","content":"e\nf"})"));
}

TEST(MessagesRequest, what_a_model_of_text_cannot_read_is_refused_by_name) {
  EXPECT_THAT(error_of(R"({"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]})"),
              ::testing::AllOf(HasSubstr("'messages[0].content[0].type'"), HasSubstr("image")));
  EXPECT_THAT(error_of(R"({"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1",
      "content":[{"type":"image"}]}]}]})"),
              HasSubstr("'messages[0].content[0].content[0].type'"));
  EXPECT_THAT(error_of(R"({"messages":[{"role":"user","content":[{"type":"document",
      "source":{"type":"base64","media_type":"application/pdf","data":"AA"}}]}]})"),
              HasSubstr("'messages[0].content[0].source.type'"));
  EXPECT_THAT(error_of(R"({"messages":[{"role":"user","content":[{"type":"bogus"}]}]})"),
              HasSubstr("is 'bogus'; there are no such blocks"));
  EXPECT_THAT(error_of(R"({"messages":[]})"), HasSubstr("'messages'"));
  EXPECT_THAT(error_of(R"({"messages":[{"role":"tool","content":"x"}]})"), HasSubstr("'messages[0].role'"));
  EXPECT_EQ(chat_of(R"({"messages":[{"role":"user","content":[{"type":"document","title":"T",
      "source":{"type":"text","media_type":"text/plain","data":"D"}}]}]})")["messages"][0]["content"],
            "T\nD");
}

TEST(MessagesRequest, tools_and_their_choice_are_those_of_a_chat) {
  const Json body = Json::parse(R"({"messages":[{"role":"user","content":"q"}],
      "tools":[{"name":"read","description":"Reads","input_schema":{"type":"object"},"strict":true},
        {"type":"bash_20250124","name":"bash"}],
      "tool_choice":{"type":"tool","name":"read","disable_parallel_tool_use":true}})");
  const MessagesRequest request = read_messages_request(body).value();
  EXPECT_EQ(request.chat["tools"], Json::parse(R"([{"type":"function","function":
      {"name":"read","description":"Reads","parameters":{"type":"object"},"strict":true}}])"));
  EXPECT_EQ(request.chat["tool_choice"]["function"]["name"], "read");
  EXPECT_EQ(request.chat["parallel_tool_calls"], false);
  ASSERT_EQ(request.warnings.size(), 1U);
  EXPECT_THAT(request.warnings[0], HasSubstr("bash"));
  EXPECT_THAT(error_of(R"({"messages":[{"role":"user","content":"q"}],"tools":[{"name":"a","input_schema":{}},
      {"name":"a","input_schema":{}}]})"),
              HasSubstr("'tools[1].name': 'a' is declared twice"));
  EXPECT_EQ(chat_of(R"({"messages":[{"role":"user","content":"q"}],"tool_choice":{"type":"any"}})")["tool_choice"],
            "required");
  EXPECT_THAT(error_of(R"({"messages":[{"role":"user","content":"q"}],"tool_choice":{"type":"some"}})"),
              HasSubstr("'tool_choice.type'"));
}

TEST(MessagesRequest, thinking_effort_and_formats_are_said_as_templates_know_them) {
  Json chat =
      chat_of(R"({"messages":[{"role":"user","content":"q"}],"thinking":{"type":"enabled","budget_tokens":2048}})");
  EXPECT_EQ(chat["chat_template_kwargs"]["enable_thinking"], true);
  EXPECT_EQ(chat["reasoning_budget_tokens"], 2048);
  chat = chat_of(R"({"messages":[{"role":"user","content":"q"}],"thinking":{"type":"disabled"},
      "output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object"}}},"stop_sequences":["a","b"]})");
  EXPECT_EQ(chat["chat_template_kwargs"]["enable_thinking"], false);
  EXPECT_FALSE(chat.contains("reasoning_budget_tokens"));
  EXPECT_EQ(chat["reasoning_effort"], "low");
  EXPECT_EQ(chat["response_format"]["json_schema"]["schema"]["type"], "object");
  EXPECT_EQ(chat["stop"], Json::parse(R"(["a","b"])"));
  EXPECT_EQ(chat["max_tokens"], 4096);
  EXPECT_THAT(error_of(R"({"messages":[{"role":"user","content":"q"}],"thinking":{"type":"enabled"}})"),
              HasSubstr("'thinking.budget_tokens'"));
}

TEST(MessagesRequest, marks_say_how_many_messages_are_kept_longer) {
  const auto marked = [](const char* body) { return read_messages_request(Json::parse(body)).value(); };
  EXPECT_EQ(marked(R"({"messages":[{"role":"user","content":"q"}]})").n_marked, std::nullopt);
  EXPECT_EQ(marked(R"({"messages":[{"role":"user","content":"q"}],
      "tools":[{"name":"a","input_schema":{},"cache_control":{"type":"ephemeral"}}]})")
                .n_marked,
            0U);
  EXPECT_EQ(marked(R"({"messages":[{"role":"user","content":"q"}],"cache_control":{"type":"ephemeral"}})").n_marked,
            1U);
  const MessagesRequest request = marked(R"({"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
      "messages":[{"role":"user","content":[{"type":"text","text":"q","cache_control":{"type":"ephemeral"}}],"ebb":{"pin":true}},
        {"role":"assistant","content":"a"},{"role":"user","content":"r"}]})");
  EXPECT_EQ(request.n_marked, 2U);
  EXPECT_GT(request.chat["messages"][0]["ebb"]["priority"], 1.0);
  EXPECT_EQ(request.chat["messages"][1]["ebb"], Json::parse(R"({"pin":true})"));
  EXPECT_FALSE(request.chat["messages"][2].contains("ebb"));
  EXPECT_THAT(error_of(R"({"messages":[{"role":"user","content":[{"type":"text","text":"q","cache_control":
      {"type":"ephemeral","ttl":"2h"}}]}]})"),
              HasSubstr("cache_control.ttl': must be '5m' or '1h'"));
  EXPECT_THAT(error_of(R"({"cache_control":{"type":"for ever"},"messages":[{"role":"user","content":"q"}]})"),
              HasSubstr("'cache_control.type'"));
}

TEST(MessagesRequest, a_stamp_that_differs_in_each_request_is_settled) {
  const auto system = [](const char* stamp) {
    const Json body = {
        {"system", fmt::format("x-anthropic-billing-header: cc_version=2.1; cch={}; x=1;\nBe brief. cch=z", stamp)},
        {"messages", Json::parse(R"([{"role":"user","content":"q"}])")}};
    return read_messages_request(body).value().chat["messages"][0]["content"].get<std::string>();
  };
  EXPECT_EQ(system("1a2b3"), system("ffffffff"));
  EXPECT_THAT(system("1a2b3"), HasSubstr("Be brief. cch=z"));
}

TEST(MessagesRequest, edits_of_the_context_have_anthropics_defaults_and_are_refused_by_name) {
  const auto with = [](const char* edits) {
    return R"({"messages":[{"role":"user","content":"q"}],"context_management":{"edits":)" + std::string(edits) + "}}";
  };
  const MessagesRequest request = read_messages_request(Json::parse(with(R"([{"type":"clear_thinking_20251015"},
        {"type":"clear_tool_uses_20250919"},
        {"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":5},"keep":{"type":"tool_uses","value":0},
         "clear_at_least":{"type":"input_tokens","value":7},"exclude_tools":["a"],"clear_tool_inputs":["b"]},
        {"type":"clear_thinking_20251015","keep":"all"},{"type":"compact_20260112"}])")))
                                      .value();
  ASSERT_TRUE(request.edits);
  const std::vector<ContextEdit>& edits = *request.edits;
  ASSERT_EQ(edits.size(), 4U);
  EXPECT_EQ(edits[0].kind, ContextEdit::Kind::kThinking);
  EXPECT_EQ(edits[0].n_kept, 1);
  EXPECT_EQ(edits[1].trigger, 100'000);
  EXPECT_EQ(edits[1].n_kept, 3);
  EXPECT_EQ(edits[2].trigger_unit, ContextEdit::Unit::kToolUses);
  EXPECT_EQ(edits[2].trigger, 5);
  EXPECT_EQ(edits[2].n_kept, 0);
  EXPECT_EQ(edits[2].clear_at_least, 7);
  EXPECT_EQ(edits[2].excluded_tools, std::vector<std::string>{"a"});
  EXPECT_EQ(edits[2].tools_of_inputs, std::vector<std::string>{"b"});
  EXPECT_EQ(edits[3].n_kept, std::nullopt);
  ASSERT_EQ(request.warnings.size(), 1U);
  EXPECT_THAT(request.warnings[0], HasSubstr("compact_20260112"));
  EXPECT_THAT(error_of(with(R"([{"type":"clear_all"}])").c_str()),
              ::testing::AllOf(HasSubstr("'context_management.edits[0].type'"), HasSubstr("clear_tool_uses_20250919")));
  EXPECT_THAT(error_of(with(R"([{"type":"clear_tool_uses_20250919","trigger":{"type":"x","value":1}}])").c_str()),
              HasSubstr("'context_management.edits[0].trigger.type'"));
  EXPECT_THAT(
      error_of(with(R"([{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":0}}])").c_str()),
      HasSubstr("'context_management.edits[0].keep.value'"));
  EXPECT_FALSE(read_messages_request(Json::parse(R"({"messages":[{"role":"user","content":"q"}]})")).value().edits);
}

}  // namespace
}  // namespace ebb
