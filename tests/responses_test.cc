// The Responses API, as Codex and openai-python speak it: items, events in order, tools, usage; and llama.cpp's own
// completion.
#include <future>
#include <latch>
#include <map>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/api_fixture.h"

namespace ebb::responses_test {
namespace {

using ::testing::HasSubstr;

class Responses : public Server {
 protected:
  std::shared_ptr<Kept> respond(Json body) {
    if (!body.contains("temperature")) body["temperature"] = 0;
    if (!body.contains("max_output_tokens")) body["max_output_tokens"] = 24;
    return ask("POST", "/v1/responses", body.dump());
  }
};

const Json& history() {
  static const Json kHistory = Json::parse(R"([
      {"type":"message","role":"developer","content":[{"type":"input_text","text":"Be short."}]},
      {"role":"user","content":"The code of the north gate is 4711."},
      {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"A code."}]},
      {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Noted."}]},
      {"type":"function_call","call_id":"abcDEF123","name":"read","arguments":"{\"path\":\"a\"}"},
      {"type":"function_call_output","call_id":"abcDEF123","output":"nothing"},
      {"role":"user","content":[{"type":"input_text","text":"What is the code of the north gate?"}]}])");
  return kHistory;
}

// Name and data of each event.
std::vector<std::pair<std::string, Json>> events(const std::string& body) {
  std::vector<std::pair<std::string, Json>> all;
  for (std::size_t at = 0; (at = body.find("event: ", at)) != std::string::npos;) {
    const std::size_t name_end = body.find('\n', at);
    const std::size_t data_end = body.find('\n', name_end + 1);
    all.emplace_back(body.substr(at + 7, name_end - at - 7),
                     Json::parse(body.substr(name_end + 7, data_end - name_end - 7)));
    at = data_end;
  }
  return all;
}

TEST_F(Responses, an_input_of_items_is_answered_with_items_and_usage) {
  const auto kept = respond({{"input", history()}, {"instructions", "You know codes."}});
  ASSERT_EQ(kept->status(), 200) << kept->body();
  const Json json = kept->json();
  EXPECT_THAT(json["id"].get<std::string>(), ::testing::StartsWith("resp_"));
  EXPECT_EQ(json["object"], "response");
  EXPECT_EQ(json["status"], "completed");
  ASSERT_EQ(json["output"].size(), 1U);
  EXPECT_EQ(json["output"][0]["type"], "message");
  EXPECT_THAT(json["output"][0]["content"][0]["text"].get<std::string>(), HasSubstr("4711"));
  EXPECT_EQ(json["usage"]["total_tokens"].get<int>(),
            json["usage"]["input_tokens"].get<int>() + json["usage"]["output_tokens"].get<int>());
  EXPECT_TRUE(json["ebb"].contains("prompt"));
  const Json cut = respond({{"input", "Hello"}, {"max_output_tokens", 1}})->json();
  EXPECT_EQ(cut["status"], "incomplete");
  EXPECT_EQ(cut["incomplete_details"]["reason"], "max_output_tokens");
}

TEST_F(Responses, a_stream_opens_fills_and_closes_each_item_in_order) {
  const auto kept = respond({{"input", history()}, {"stream", true}});
  const auto all = events(kept->body());
  std::vector<std::string> names;
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [name, data] = all[i];
    EXPECT_EQ(data["type"], name);
    EXPECT_EQ(data["sequence_number"], i);
    if (name == "response.output_text.delta") text += data["delta"].get<std::string>();
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"response.created", "response.in_progress", "response.output_item.added",
                                             "response.content_part.added", "response.output_text.delta",
                                             "response.output_text.done", "response.content_part.done",
                                             "response.output_item.done", "response.completed"}));
  const Json& response = all.back().second["response"];
  EXPECT_EQ(response["output"][0]["content"][0]["text"], text);
  EXPECT_THAT(text, HasSubstr("4711"));
  EXPECT_GT(response["usage"]["output_tokens"].get<int>(), 0);
  EXPECT_THAT(kept->body(), ::testing::Not(HasSubstr("[DONE]")));
}

TEST_F(Responses, functions_are_called_and_other_tools_left_out_with_a_warning) {
  const Json parameters =
      Json::parse(R"({"type":"object","properties":{"all":{"type":"boolean"}},"required":["all"]})");
  Json body = {{"input", "List the files."},
               {"tools",
                {{{"type", "function"}, {"name", "list"}, {"parameters", parameters}, {"strict", false}},
                 {{"type", "web_search"}}}},
               {"tool_choice", {{"type", "function"}, {"name", "list"}}},
               {"parallel_tool_calls", false},
               {"max_output_tokens", 100}};
  const Json json = respond(body)->json();
  ASSERT_EQ(json["output"].size(), 1U) << json;
  EXPECT_EQ(json["output"][0]["type"], "function_call");
  EXPECT_EQ(json["output"][0]["name"], "list");
  EXPECT_TRUE(Json::parse(json["output"][0]["arguments"].get<std::string>())["all"].is_boolean());
  EXPECT_THAT(json["ebb"]["warnings"][0].get<std::string>(), HasSubstr("web_search"));
  body["stream"] = true;
  const auto all = events(respond(body)->body());
  std::string arguments;
  for (const auto& [name, data] : all) {
    if (name == "response.function_call_arguments.delta") arguments += data["delta"].get<std::string>();
    if (name == "response.function_call_arguments.done") {
      EXPECT_EQ(data["arguments"], arguments);
    }
  }
  EXPECT_EQ(all.back().second["response"]["output"][0]["arguments"], json["output"][0]["arguments"]);
}

TEST_F(Responses, custom_tools_and_those_of_a_namespace_are_called_as_they_were_declared) {
  const Json parameters =
      Json::parse(R"({"type":"object","properties":{"all":{"type":"boolean"}},"required":["all"]})");
  const Json list = {{"type", "function"}, {"name", "list"}, {"parameters", parameters}};
  Json body = {{"input", "List the files."},
               {"tools",
                {list,
                 {{"type", "namespace"}, {"name", "mcp"}, {"tools", {list}}},
                 {{"type", "custom"}, {"name", "say"}, {"description", "Says a text"}}}},
               {"parallel_tool_calls", false},
               {"max_output_tokens", 120}};
  const auto called = [&](const char* name) {
    body["tool_choice"] = {{"type", "function"}, {"name", name}};
    return respond(body)->json()["output"][0];
  };
  EXPECT_FALSE(called("list").contains("namespace"));
  const Json spaced = called("mcp__list");
  EXPECT_EQ(spaced["name"], "list");
  EXPECT_EQ(spaced["namespace"], "mcp");
  const Json said = called("say");
  EXPECT_EQ(said["type"], "custom_tool_call");
  EXPECT_TRUE(said["input"].is_string()) << said;
  EXPECT_FALSE(said.contains("arguments"));
  body["stream"] = true;
  const auto all = events(respond(body)->body());
  const auto done =
      std::ranges::find(all, "response.custom_tool_call_input.done", &std::pair<std::string, Json>::first);
  ASSERT_NE(done, all.end());
  EXPECT_EQ(done->second["input"], said["input"]);
  EXPECT_EQ(all.back().second["response"]["output"][0]["input"], said["input"]);
}

TEST_F(Responses, allowed_tools_alone_are_called_and_all_stay_in_the_prompt) {
  const Json parameters = Json::parse(R"({"type":"object","properties":{},"additionalProperties":false})");
  Json body = {{"input", "List the files."},
               {"tools",
                {{{"type", "function"}, {"name", "list"}, {"parameters", parameters}},
                 {{"type", "function"}, {"name", "say"}, {"parameters", parameters}}}},
               {"max_output_tokens", 60}};
  const int n_all = ask("POST", "/v1/responses/input_tokens", body.dump())->json()["input_tokens"];
  for (const char* name : {"list", "say"}) {
    body["tool_choice"] = {
        {"type", "allowed_tools"}, {"mode", "required"}, {"tools", {{{"type", "function"}, {"name", name}}}}};
    const Json json = respond(body)->json();
    EXPECT_EQ(json["output"][0]["name"], name);
    EXPECT_EQ(json["usage"]["input_tokens"], n_all);
  }
  body["tool_choice"]["tools"][0]["name"] = "other";
  EXPECT_EQ(respond(body)->status(), 400);
}

TEST_F(Responses, what_other_servers_tools_left_in_the_input_is_left_out_with_a_warning) {
  Json input = history();
  input.insert(input.begin() + 1, Json::parse(R"({"type":"web_search_call","id":"ws_1","status":"completed"})"));
  input.insert(input.begin() + 1,
               Json::parse(R"({"type":"custom_tool_call","call_id":"c1","name":"say","input":"hello"})"));
  input.insert(input.begin() + 2, Json::parse(R"({"type":"custom_tool_call_output","call_id":"c1","output":"said"})"));
  const Json json = respond({{"input", input}})->json();
  EXPECT_EQ(json["status"], "completed") << json;
  EXPECT_THAT(json["ebb"]["warnings"][0].get<std::string>(), HasSubstr("web_search_call"));
}

TEST_F(Responses, text_has_the_format_that_was_asked_for) {
  const Json schema = Json::parse(R"({"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]})");
  const Json format = {{"type", "json_schema"}, {"name", "a"}, {"strict", true}, {"schema", schema}};
  const Json json = respond({{"input", "Say something."}, {"text", {{"format", format}}}})->json();
  EXPECT_TRUE(Json::parse(json["output"][0]["content"][0]["text"].get<std::string>())["ok"].is_boolean()) << json;
}

TEST_F(Responses, what_makes_no_sense_is_refused_with_the_field_named) {
  const std::map<std::string, std::string> wrong = {
      {R"({})", "'input'"},
      {R"({"input":5})", "'input'"},
      {R"({"input":[5]})", "'input[0]'"},
      {R"({"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]})", "'input[0]."},
      {R"({"input":[{"type":"function_call"}]})", "'input[0].name'"},
      {R"({"input":"x","previous_response_id":"resp_1"})", "'previous_response_id'"},
      {R"({"input":"x","conversation":"conv_1"})", "'conversation'"},
      {R"({"input":"x","background":true})", "'background'"},
      {R"({"input":"x","instructions":5})", "'instructions'"},
      {R"({"input":"x","tools":{}})", "'tools'"},
      {R"({"input":"x","reasoning":1})", "'reasoning'"},
      {R"({"input":"x","text":1})", "'text'"},
      {R"({"input":"x","max_output_tokens":-7})", "max_tokens"},
  };
  for (const auto& [body, named] : wrong) {
    const auto kept = ask("POST", "/v1/responses", body);
    EXPECT_EQ(kept->status(), 400) << body;
    EXPECT_THAT(kept->json()["error"]["message"].get<std::string>(), HasSubstr(named)) << body;
  }
}

class NativeCompletion : public Server {
 protected:
  // The answer to a body of n choices, none of which begins before all of them wait.
  std::shared_ptr<Kept> ask_while_held(const Json& body, std::size_t n) {
    std::latch held{1};
    std::promise<void> go;
    const std::jthread holder([&] {
      scheduler_->inspect([&](const Lanes&) {
        held.count_down();
        go.get_future().wait();
      });
    });
    held.wait();
    std::shared_ptr<Kept> kept = send("POST", "/completion", body.dump());
    while (scheduler_->stats().n_waiting < n) std::this_thread::yield();
    go.set_value();
    kept->wait();
    return kept;
  }
};

TEST_F(NativeCompletion, a_prompt_may_be_an_object_with_its_text) {
  const Json body = {
      {"prompt", {{"prompt_string", "The code of the north gate is"}}}, {"n_predict", 4}, {"temperature", 0}};
  Json plain = body;
  plain["prompt"] = "The code of the north gate is";
  EXPECT_EQ(ask("POST", "/completion", body.dump())->json()["content"],
            ask("POST", "/completion", plain.dump())->json()["content"]);
  EXPECT_EQ(ask("POST", "/completion", R"({"prompt":{}})")->status(), 400);
}

TEST_F(NativeCompletion, is_llama_cpps_shape_whole_and_streamed) {
  Json body = {
      {"prompt", "The code of"}, {"n_predict", 4}, {"temperature", 0}, {"n_probs", 2}, {"return_tokens", true}};
  const Json whole = ask("POST", "/completion", body.dump())->json();
  EXPECT_EQ(whole["stop"], true);
  EXPECT_EQ(whole["stop_type"], "limit");
  EXPECT_EQ(whole["tokens_predicted"], 4);
  EXPECT_EQ(whole["tokens"].size(), 4U);
  EXPECT_EQ(whole["completion_probabilities"][0]["top_logprobs"].size(), 2U);
  EXPECT_THAT(whole["prompt"].get<std::string>(), HasSubstr("The code of"));
  body["stream"] = true;
  const std::string stream = ask("POST", "/completion", body.dump())->body();
  std::string text;
  std::size_t n_tokens = 0;
  bool has_stopped = false;
  for (std::size_t at = 0; (at = stream.find("data: ", at)) != std::string::npos; ++at) {
    const Json part = Json::parse(stream.substr(at + 6, stream.find('\n', at) - at - 6));
    EXPECT_FALSE(has_stopped);
    text += part["content"].get<std::string>();
    n_tokens += part["tokens"].size();
    has_stopped = part["stop"].get<bool>();
  }
  EXPECT_TRUE(has_stopped);
  EXPECT_EQ(text, whole["content"]);
  EXPECT_EQ(n_tokens, 4U);
}

TEST_F(NativeCompletion, its_last_part_says_how_it_was_asked_for_where_it_ran_and_what_ended_it) {
  Json body = {{"prompt", "The code of"}, {"n_predict", 24}, {"temperature", 0}, {"seed", 7}, {"n", 2}};
  const std::string text = ask("POST", "/completion", body.dump())->json()[0]["content"];
  ASSERT_GT(text.size(), 4U);
  body["stop"] = {text.substr(2, 2), "never said"};
  const Json both = ask_while_held(body, 2)->json();
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0]["content"], text.substr(0, 2));
  EXPECT_EQ(both[0]["stop_type"], "word");
  EXPECT_EQ(both[0]["stopping_word"], text.substr(2, 2));
  EXPECT_EQ(both[0]["generation_settings"]["stop"], body["stop"]);
  EXPECT_EQ(both[0]["generation_settings"]["n_predict"], 24);
  EXPECT_EQ(both[0]["generation_settings"]["seed"], 7);
  EXPECT_EQ(both[1]["generation_settings"]["seed"], 8) << "the same would say the same again";
  EXPECT_EQ(both[0]["id_slot"].get<int>() + both[1]["id_slot"].get<int>(), 0 + 1) << "two at once";
  EXPECT_EQ(both[0]["truncated"], false);
  const Json limited = ask("POST", "/completion", R"({"prompt":"The code of","n_predict":1})")->json();
  EXPECT_EQ(limited["stopping_word"], "");
  EXPECT_EQ(limited["generation_settings"]["seed"], -1);
}

TEST_F(NativeCompletion, only_the_members_that_are_asked_for_are_told) {
  const Json fields = {"content", "generation_settings/n_predict", "generation_settings/nothing", "stop/deeper"};
  Json body = {{"prompt", "The code of"}, {"n_predict", 2}, {"response_fields", fields}};
  const Json picked = ask("POST", "/completion", body.dump())->json();
  EXPECT_EQ(picked.size(), 2U) << picked;
  EXPECT_TRUE(picked["content"].is_string());
  EXPECT_EQ(picked["generation_settings/n_predict"], 2);
  body["response_fields"] = {1};
  EXPECT_EQ(ask("POST", "/completion", body.dump())->status(), 400);
}

}  // namespace
}  // namespace ebb::responses_test
