// Chat as clients see it: tools, thinking, formats, chances, several choices. The bundled model never learned to call a
// tool; grammars make it, so that what comes out is known.
#include <array>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/api_fixture.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

Json say(std::string_view text) { return {{"role", "user"}, {"content", text}}; }

Json only(const Json& one) { return Json::array({one}); }

Json read_tool() {
  return Json::parse(R"({"type":"function","function":{"name":"read","description":"Reads a file","parameters":
      {"type":"object","properties":{"path":{"type":"string","maxLength":8},"n":{"type":"integer","maximum":99,
       "minimum":0}},"required":["path","n"]}}})");
}

Json list_tool() {
  return {{"type", "function"},
          {"function",
           {{"name", "list"},
            {"parameters",
             {{"type", "object"}, {"properties", {{"all", {{"type", "boolean"}}}}}, {"required", {"all"}}}}}}};
}

// The JSON of each event, without [DONE].
std::vector<Json> chunks(const std::string& body) {
  std::vector<Json> all;
  for (std::size_t at = 0; (at = body.find("data: ", at)) != std::string::npos;) {
    const std::size_t end = body.find('\n', at);
    const std::string data = body.substr(at + 6, end - at - 6);
    if (data != "[DONE]") all.push_back(Json::parse(data));
    at = end;
  }
  return all;
}

// A stream's deltas put together as clients do.
Json joined(const std::vector<Json>& all) {
  Json message = {{"content", nullptr}};
  for (const Json& one : all) {
    if (one["choices"].empty()) continue;
    const Json& delta = one["choices"][0]["delta"];
    EXPECT_LE(delta.size() - delta.count("role"), 1U) << "one kind of delta in a chunk: " << delta;
    for (const char* name : {"content", "reasoning_content"}) {
      if (!delta.contains(name) || delta[name].is_null()) continue;
      const std::string before =
          message.contains(name) && message[name].is_string() ? message[name].get<std::string>() : "";
      message[name] = before + delta[name].get<std::string>();
    }
    if (!delta.contains("tool_calls")) continue;
    for (const Json& call : delta["tool_calls"]) {
      Json& whole = message["tool_calls"][call["index"].get<std::size_t>()];
      if (whole.is_null()) {
        EXPECT_EQ(call["function"]["arguments"], "");
        EXPECT_EQ(call["type"], "function");
        whole = {{"id", call["id"]}, {"type", "function"}, {"function", call["function"]}};
      } else {
        EXPECT_FALSE(call.contains("id"));
        whole["function"]["arguments"] =
            whole["function"]["arguments"].get<std::string>() + call["function"]["arguments"].get<std::string>();
      }
    }
  }
  return message;
}

using Chat = Server;

TEST_F(Chat, a_required_call_is_forced_in_the_schemas_form_whole_and_streamed) {
  Json more = {{"tools", {read_tool(), list_tool()}},
               {"tool_choice", "required"},
               {"parallel_tool_calls", false},
               {"max_tokens", 200}};
  const auto kept = chat(only(say("Read the file.")), more);
  ASSERT_EQ(kept->status(), 200) << kept->body();
  const Json choice = kept->json()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_TRUE(choice["message"]["content"].is_null());
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 1U) << choice;
  const Json call = choice["message"]["tool_calls"][0];
  EXPECT_THAT(call["id"].get<std::string>(), ::testing::MatchesRegex("[A-Za-z0-9]{9}"));
  const Json arguments = Json::parse(call["function"]["arguments"].get<std::string>());
  EXPECT_TRUE(arguments.contains("path") || arguments.contains("all"));

  more["stream"] = true;
  const auto stream = chat(only(say("Read the file.")), more);
  const std::vector<Json> all = chunks(stream->body());
  Json message = joined(all);
  EXPECT_NE(message["tool_calls"][0]["id"], call["id"]);
  EXPECT_EQ(message["tool_calls"][0]["function"], call["function"]);
  EXPECT_TRUE(message["content"].is_null());
  EXPECT_EQ(all.back()["choices"][0]["finish_reason"], "tool_calls");
}

TEST_F(Chat, tools_whose_arguments_are_too_much_for_a_grammar_are_called_by_name_with_any) {
  std::string pattern = "^";
  for (int i = 0; i < 300; ++i) pattern += "[a-z]{1,1999}b";
  Json tool = read_tool();
  tool["function"]["parameters"] = {{"type", "object"},
                                    {"properties", {{"all", {{"type", "string"}, {"pattern", pattern + "$"}}}}},
                                    {"required", {"all"}}};
  for (const char* const choice : {"required", "auto"}) {
    const auto kept =
        chat(only(say("Read the file.")),
             {{"tools", only(tool)}, {"tool_choice", choice}, {"parallel_tool_calls", false}, {"max_tokens", 60}});
    ASSERT_EQ(kept->status(), 200) << kept->body();
    EXPECT_THAT(kept->json()["ebb"]["warnings"].dump(), HasSubstr("arguments of calls not enforced"));
    if (std::string_view(choice) == "auto") continue;
    EXPECT_EQ(kept->json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "read");
    EXPECT_NE(kept->json()["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"], "{}")
        << "with any arguments, not without";
  }
  tool["function"]["strict"] = true;
  const auto refused = chat(only(say("Read the file.")), {{"tools", only(tool)}, {"tool_choice", "required"}});
  EXPECT_EQ(refused->status(), 400) << refused->body();
}

TEST_F(Chat, a_named_function_is_the_one_that_is_called) {
  const Json named = {{"type", "function"}, {"function", {{"name", "list"}}}};
  for (const Json& choice : {named, Json{{"type", "function"}, {"name", "list"}}}) {
    const auto kept = chat(only(say("Read the file.")), {{"tools", {read_tool(), list_tool()}},
                                                         {"tool_choice", choice},
                                                         {"parallel_tool_calls", false},
                                                         {"max_tokens", 100}});
    ASSERT_EQ(kept->status(), 200) << kept->body();
    EXPECT_EQ(kept->json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "list");
  }
}

TEST_F(Chat, tools_are_told_to_the_model_unless_none_may_be_called) {
  Json body = {{"messages", only(say("Hello"))}, {"tools", only(read_tool())}};
  const auto prompt = [&] { return ask("POST", "/apply-template", body.dump())->json()["prompt"].get<std::string>(); };
  EXPECT_THAT(prompt(), HasSubstr("Reads a file"));
  body["tool_choice"] = "none";
  EXPECT_THAT(prompt(), ::testing::Not(HasSubstr("Reads a file")));
  const auto counted = ask("POST", "/v1/chat/completions/input_tokens", body.dump());
  ASSERT_EQ(counted->status(), 200) << counted->body();
  EXPECT_EQ(counted->json()["object"], "response.input_tokens");
  const Json usage = chat(only(say("Hello")), {{"max_tokens", 1}})->json()["usage"];
  EXPECT_EQ(counted->json()["input_tokens"], usage["prompt_tokens"]);
}

TEST_F(Chat, calls_that_may_come_leave_the_answer_as_it_is_without_them) {
  const Json messages = {say("The code of the north gate is 4711."),
                         {{"role", "assistant"}, {"content", "Noted."}},
                         say("What is the code of the north gate?")};
  const auto kept = chat(messages, {{"tools", only(read_tool())}});
  ASSERT_EQ(kept->status(), 200) << kept->body();
  EXPECT_EQ(kept->json()["choices"][0]["finish_reason"], "stop");
  EXPECT_THAT(kept->json()["choices"][0]["message"]["content"].get<std::string>(), HasSubstr("4711"));
}

// The prompt opens thinking, and the bundled model, which never learned it, would not end it.
TEST_F(Chat, thinking_is_apart_counted_and_ended_when_it_is_long_enough) {
  const std::string thinks =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
      "<|im_start|>assistant\n{% if enable_thinking is not defined or enable_thinking %}<think>\n{% else %}"
      "<think>\n\n</think>\n\n{% endif %}";
  open({.chat_template = thinks});
  Json limited = {{"reasoning_budget_tokens", 5}, {"max_tokens", 30}};
  for (std::int32_t t = 0; t < engine_->vocabulary().n_tokens(); ++t) {
    if (engine_->vocabulary().is_end_of_generation(Token(t))) limited["logit_bias"][std::to_string(t)] = false;
  }
  const Json reply = chat(only(say("Hello")), limited)->json();
  const Json& message = reply["choices"][0]["message"];
  EXPECT_TRUE(message.contains("reasoning_content")) << reply;
  EXPECT_FALSE(message["content"].get<std::string>().empty());
  const int n_thinking = reply["usage"]["completion_tokens_details"]["reasoning_tokens"];
  EXPECT_GT(n_thinking, 5);
  EXPECT_LT(n_thinking, 20);

  Json at_once = limited;
  at_once["reasoning_budget_tokens"] = 0;
  EXPECT_FALSE(chat(only(say("Hello")), at_once)->json()["choices"][0]["message"].contains("reasoning_content"));
  Json kept = limited;
  kept["reasoning_format"] = "none";
  EXPECT_THAT(chat(only(say("Hello")), kept)->json()["choices"][0]["message"]["content"].get<std::string>(),
              HasSubstr("</think>"));
  Json off = limited;
  off["reasoning_effort"] = "none";
  const Json without = chat(only(say("Hello")), off)->json();
  EXPECT_EQ(without["usage"]["completion_tokens_details"]["reasoning_tokens"], 0);

  Json streamed = limited;
  streamed["stream"] = true;
  EXPECT_EQ(joined(chunks(chat(only(say("Hello")), streamed)->body())),
            Json({{"content", message["content"]}, {"reasoning_content", message["reasoning_content"]}}));
}

TEST_F(Chat, thinking_is_free_and_what_is_forced_comes_behind_it) {
  open({.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}<think>\n{# </think> #}"});
  const Json more = {{"reasoning_budget_tokens", 6}, {"grammar", "root ::= \"yes\" | \"no\""}, {"max_tokens", 60}};
  const Json message = chat(only(say("The owner of the red boat is Ada. Who owns the red boat? The owner of")), more)
                           ->json()["choices"][0]["message"];
  EXPECT_THAT(message["content"].get<std::string>(), ::testing::AnyOf("yes", "no")) << message;
  EXPECT_NE(message.value("reasoning_content", ""), "") << message;
  const Json called = chat(only(say("Say yes or no.")), {{"reasoning_budget_tokens", 6},
                                                         {"tools", only(list_tool())},
                                                         {"tool_choice", "required"},
                                                         {"parallel_tool_calls", false},
                                                         {"max_tokens", 100}})
                          ->json()["choices"][0];
  EXPECT_EQ(called["finish_reason"], "tool_calls") << called;
  EXPECT_EQ(called["message"]["tool_calls"][0]["function"]["name"], "list");
}

TEST_F(Chat, answers_are_json_where_json_is_asked_for) {
  const Json schema = Json::parse(
      R"({"type":"object","properties":{"ok":{"type":"boolean"},"n":{"type":"integer","minimum":0,"maximum":9}},
          "required":["ok","n"],"additionalProperties":false})");
  const Json strict = {{"type", "json_schema"}, {"json_schema", {{"name", "a"}, {"strict", true}, {"schema", schema}}}};
  for (const Json& more : {Json{{"response_format", strict}}, Json{{"json_schema", schema}},
                           Json{{"response_format", {{"type", "json_object"}, {"schema", schema}}}}}) {
    const auto kept = chat(only(say("Say something.")), more);
    ASSERT_EQ(kept->status(), 200) << kept->body();
    const Json answer = Json::parse(kept->json()["choices"][0]["message"]["content"].get<std::string>());
    EXPECT_TRUE(answer["ok"].is_boolean() && answer["n"].is_number_integer()) << answer;
    EXPECT_FALSE(kept->json()["ebb"].contains("warnings"));
  }
  const auto chosen = chat(only(say("Say something.")), {{"grammar", "root ::= \"yes\" | \"no\""}});
  EXPECT_THAT(chosen->json()["choices"][0]["message"]["content"].get<std::string>(), ::testing::AnyOf("yes", "no"));
}

TEST_F(Chat, keywords_that_are_not_enforced_are_an_error_where_strict_and_a_warning_elsewhere) {
  Json format = {
      {"type", "json_schema"},
      {"json_schema",
       {{"name", "a"},
        {"schema", {{"type", "array"}, {"items", {{"type", "null"}}}, {"uniqueItems", true}, {"maxItems", 1}}}}}};
  const auto warned = chat(only(say("A number.")), {{"response_format", format}});
  ASSERT_EQ(warned->status(), 200) << warned->body();
  EXPECT_THAT(warned->json()["ebb"]["warnings"][0].get<std::string>(), HasSubstr("uniqueItems"));
  format["json_schema"]["strict"] = true;
  const auto refused = chat(only(say("A number.")), {{"response_format", format}});
  EXPECT_EQ(refused->status(), 400);
  EXPECT_THAT(refused->json()["error"]["message"].get<std::string>(), HasSubstr("uniqueItems"));
  Json tool = read_tool();
  tool["function"]["strict"] = true;
  tool["function"]["parameters"]["properties"]["n"]["not"] = {{"const", 7}};
  const auto tools = chat(only(say("Read.")), {{"tools", only(tool)}});
  EXPECT_EQ(tools->status(), 400);
  EXPECT_THAT(tools->json()["error"]["message"].get<std::string>(), HasSubstr("tools[0]"));
}

TEST_F(Chat, strict_tools_are_refused_where_a_template_writes_strings_in_a_way_that_holds_less) {
  open({.chat_template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
                         "{# <tool_call> <function=f> <parameter=a> #}"});
  Json tool = read_tool();
  tool["function"]["strict"] = true;
  tool["function"]["parameters"] = {
      {"type", "object"}, {"properties", {{"all", {{"type", "string"}, {"maxLength", 3000}}}}}, {"required", {"all"}}};
  const auto refused = chat(only(say("Read.")), {{"tools", only(tool)}});
  EXPECT_EQ(refused->status(), 400) << refused->body();
  EXPECT_THAT(refused->json()["error"]["message"].get<std::string>(), HasSubstr("maxLength"));
  tool["function"]["parameters"]["properties"]["all"] = {{"enum", {"north", "south"}}};
  const auto held = chat(only(say("Read.")), {{"tools", only(tool)}, {"tool_choice", "required"}, {"max_tokens", 80}});
  ASSERT_EQ(held->status(), 200) << held->body();
  const Json call = held->json()["choices"][0]["message"]["tool_calls"][0]["function"];
  EXPECT_THAT(Json::parse(call["arguments"].get<std::string>())["all"].get<std::string>(),
              ::testing::AnyOf("north", "south"));
}

TEST_F(Chat, what_makes_no_sense_is_refused_with_the_field_named) {
  const std::map<std::string, std::string> wrong = {
      {R"("tool_choice":"required")", "'tool_choice'"},
      {R"("tool_choice":5)", "'tool_choice'"},
      {R"("tools":[{"type":"function","function":{"name":"a"}}],"tool_choice":{"function":{"name":"b"}})",
       "'tool_choice'"},
      {R"("tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"a"}}])",
       "tools[1]"},
      {R"("tools":[{"type":"function","function":{"name":"a","parameters":{"type":"objekt"}}}])", "tool a"},
      {R"("tools":[{"type":"function","function":{"name":"a"}}],"grammar":"root ::= \"a\"")", "'grammar'"},
      {R"("tools":[{"type":"web_search"}])", "tools[0]"},
      {R"("parallel_tool_calls":1)", "'parallel_tool_calls'"},
      {R"("response_format":"json")", "'response_format'"},
      {R"("response_format":{"type":"yaml"})", "'response_format.type'"},
      {R"("response_format":{"type":"json_schema"})", "'response_format.json_schema'"},
      {R"("json_schema":{"type":"integer"},"grammar":"root ::= \"a\"")", "'grammar'"},
      {R"("json_schema":{"type":7})", "schema"},
      {R"("reasoning_format":"odd")", "reasoning_format"},
      {R"("reasoning_budget_tokens":-2)", "'reasoning_budget_tokens'"},
      {R"("top_logprobs":3)", "'top_logprobs'"},
      {R"("logprobs":true,"top_logprobs":21)", "'top_logprobs'"},
      {R"("logprobs":5)", "'logprobs'"},
      {R"("n":3)", "'n'"},
  };
  for (const auto& [fields, named] : wrong) {
    const auto kept =
        ask("POST", "/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}],)" + fields + "}");
    EXPECT_EQ(kept->status(), 400) << fields;
    EXPECT_THAT(kept->json()["error"]["message"].get<std::string>(), HasSubstr(named)) << fields;
  }
  EXPECT_EQ(scheduler_->stats().n_requests, 0);
}

TEST_F(Chat, chances_are_told_token_by_token_whole_and_streamed) {
  Json more = {{"logprobs", true}, {"top_logprobs", 3}, {"max_tokens", 5}};
  const Json whole = chat(only(say("Hello")), more)->json();
  const Json content = whole["choices"][0]["logprobs"]["content"];
  ASSERT_GE(content.size(), 1U) << whole;
  for (const Json& token : content) {
    EXPECT_LE(token["logprob"].get<double>(), 0.0);
    EXPECT_EQ(token["top_logprobs"].size(), 3U);
    // Greedy: the likeliest is the one that was kept.
    EXPECT_EQ(token["top_logprobs"][0]["id"], token["id"]);
  }
  more["stream"] = true;
  Json streamed = Json::array();
  for (const Json& chunk : chunks(chat(only(say("Hello")), more)->body())) {
    const Json& logprobs = chunk["choices"][0]["logprobs"];
    if (!logprobs.is_null()) streamed.insert(streamed.end(), logprobs["content"].begin(), logprobs["content"].end());
  }
  ASSERT_EQ(streamed.size(), content.size());
  for (std::size_t i = 0; i < content.size(); ++i) EXPECT_EQ(streamed[i]["id"], content[i]["id"]);
}

TEST_F(Chat, several_choices_are_several_answers_whose_prompt_counts_once) {
  Json more = {{"n", 2}, {"temperature", 1.5}, {"seed", 3}, {"max_tokens", 6}};
  const Json whole = chat(only(say("Hello")), more)->json();
  ASSERT_EQ(whole["choices"].size(), 2U) << whole;
  EXPECT_EQ(whole["choices"][1]["index"], 1);
  const Json one = chat(only(say("Hello")), {{"max_tokens", 1}})->json();
  EXPECT_EQ(whole["usage"]["prompt_tokens"], one["usage"]["prompt_tokens"]);
  EXPECT_GE(whole["usage"]["completion_tokens"].get<int>(), 2);
  more["stream"] = true;
  more["stream_options"] = {{"include_usage", true}};
  std::array<int, 2> n_finished{};
  const std::vector<Json> all = chunks(chat(only(say("Hello")), more)->body());
  for (const Json& chunk : all) {
    for (const Json& choice : chunk["choices"]) {
      if (!choice["finish_reason"].is_null()) ++n_finished.at(choice["index"].get<std::size_t>());
    }
  }
  EXPECT_EQ(n_finished, (std::array{1, 1}));
  EXPECT_TRUE(all.back()["choices"].empty());
  EXPECT_TRUE(all.back().contains("usage"));
}

TEST_F(Chat, where_one_prompt_fails_the_others_are_computed_for_nobody_and_stop) {
  // There may be one session, which the first prompt has.
  api_.reset();
  scheduler_.reset();
  scheduler_ = *Scheduler::start(*engine_, {.n_parallel = 2, .lanes = {.most = 1}});
  api_ = *Api::create(*engine_, *scheduler_, {.model_name = "m"});
  Json body = {{"prompt", {"The code of", "A"}}};
  for (std::int32_t t = 0; t < engine_->vocabulary().n_tokens(); ++t) {
    if (engine_->vocabulary().is_end_of_generation(Token(t))) body["logit_bias"][std::to_string(t)] = false;
  }
  EXPECT_EQ(ask("POST", "/v1/completions", body.dump())->status(), 503);
  // What was cancelled ends with the step under way.
  for (int i = 0; i < 3; ++i) scheduler_->inspect([](const Lanes&) {});
  EXPECT_EQ(scheduler_->stats().n_running, 0U);
  EXPECT_LT(scheduler_->stats().n_generated_tokens, 1000);
}

TEST_F(Chat, several_prompts_are_completed_in_their_order) {
  const auto kept = ask("POST", "/v1/completions",
                        R"({"prompt":["The code of","A"],"n":2,"max_tokens":3,"temperature":0,"logprobs":2})");
  ASSERT_EQ(kept->status(), 200) << kept->body();
  const Json json = kept->json();
  ASSERT_EQ(json["choices"].size(), 4U);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(json["choices"][i]["index"], i);
  EXPECT_EQ(json["choices"][0]["text"], json["choices"][1]["text"]);
  EXPECT_EQ(json["choices"][2]["text"], json["choices"][3]["text"]);
  EXPECT_EQ(json["choices"][0]["logprobs"]["tokens"].size(), json["choices"][0]["logprobs"]["token_logprobs"].size());
  const auto count = [&](const char* text) {
    return ask("POST", "/tokenize", Json({{"content", text}, {"add_special", true}}).dump())->json()["tokens"].size();
  };
  EXPECT_EQ(json["usage"]["prompt_tokens"], count("The code of") + count("A"));
  for (const char* wrong : {R"({"prompt":[]})", R"({"prompt":[[]]})", R"({"prompt":["a",[1,"b",{}]]})",
                            R"({"prompt":-1})", R"({"prompt":"a","echo":true})", R"({"prompt":"a","best_of":2})"}) {
    EXPECT_EQ(ask("POST", "/v1/completions", wrong)->status(), 400) << wrong;
  }
}

}  // namespace
}  // namespace ebb
