// Anthropic's Messages, as Claude Code and the package anthropic speak it: blocks, events in order, usage, errors. What the
// package makes of it: tests/e2e/anthropic_test.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/api_fixture.h"

namespace ebb::messages_test {
namespace {

using ::testing::HasSubstr;

class Messages : public Server {
 protected:
  std::shared_ptr<Kept> tell(Json body, const char* path = "/v1/messages") {
    if (!body.contains("temperature")) body["temperature"] = 0;
    if (!body.contains("max_tokens")) body["max_tokens"] = 24;
    return ask("POST", path, body.dump());
  }
};

Json history() {
  return Json::parse(R"([{"role":"user","content":"The code of the north gate is 4711."},
      {"role":"assistant","content":[{"type":"text","text":"Noted."}]},
      {"role":"user","content":[{"type":"text","text":"What is the code of the north gate?"}]}])");
}

TEST_F(Messages, a_stream_is_the_message_in_blocks) {
  const Json whole = tell({{"messages", history()}})->json();
  const auto kept = tell({{"messages", history()}, {"stream", true}});
  const std::string& body = kept->body();
  std::vector<std::string> names;
  std::string text;
  Json usage;
  for (std::size_t at = 0; (at = body.find("event: ", at)) != std::string::npos;) {
    const std::size_t name_end = body.find('\n', at);
    const std::string name = body.substr(at + 7, name_end - at - 7);
    at = body.find('\n', name_end + 1);
    const Json data = Json::parse(body.substr(name_end + 7, at - name_end - 7));
    EXPECT_EQ(data["type"], name);
    if (name == "content_block_delta") text += data["delta"]["text"].get<std::string>();
    if (data.contains("usage")) usage = data["usage"];
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"message_start", "ping", "content_block_start", "content_block_delta",
                                             "content_block_stop", "message_delta", "message_stop"}));
  EXPECT_EQ(text, whole["content"][0]["text"]);
  EXPECT_THAT(text, HasSubstr("4711"));
  EXPECT_EQ(usage["output_tokens"], whole["usage"]["output_tokens"]);
  EXPECT_THAT(body, ::testing::Not(HasSubstr("[DONE]")));
}

TEST_F(Messages, each_token_of_a_prompt_is_counted_once) {
  const Json body = {{"messages", history()}};
  const int n = tell(body, "/v1/messages/count_tokens")->json()["input_tokens"];
  const auto total = [&](const Json& usage) {
    return usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>() +
           usage["cache_creation_input_tokens"].get<int>();
  };
  Json marked = body;
  marked["messages"][0]["content"] = Json::parse(
      R"([{"type":"text","text":"The code of the north gate is 4711.","cache_control":{"type":"ephemeral"}}])");
  const Json first = tell(marked)->json()["usage"];
  EXPECT_EQ(total(first), n);
  EXPECT_GT(first["cache_creation_input_tokens"], 0);
  EXPECT_LT(first["cache_creation_input_tokens"], n);
  const Json second = tell(marked)->json()["usage"];
  EXPECT_EQ(total(second), n);
  EXPECT_GE(second["cache_read_input_tokens"], first["cache_creation_input_tokens"]);
  EXPECT_EQ(second["cache_creation_input_tokens"], 0);
}

TEST_F(Messages, errors_are_said_as_anthropics_servers_say_them) {
  const auto refused = tell({{"messages", Json::parse(R"([{"role":"user","content":[{"type":"image"}]}])")}});
  EXPECT_EQ(refused->status(), 400);
  EXPECT_EQ(refused->json()["type"], "error");
  EXPECT_EQ(refused->json()["error"]["type"], "invalid_request_error");
  EXPECT_THAT(refused->json()["error"]["message"].get<std::string>(), HasSubstr("image"));
  EXPECT_EQ(ask("POST", "/v1/messages", "[]")->json()["type"], "error");
  const auto wrong_method = ask("GET", "/v1/messages", "");
  EXPECT_EQ(wrong_method->status(), 405);
  EXPECT_EQ(wrong_method->json()["type"], "error");
}

TEST_F(Messages, routes_that_are_not_there_are_refused_as_anthropics_servers_refuse_them) {
  for (const char* path : {"/v1/messages/batches", "/v1/messages/msg_1/results"}) {
    const auto unknown = ask("POST", path, "{}");
    EXPECT_EQ(unknown->status(), 404) << path;
    EXPECT_EQ(unknown->json()["type"], "error") << path;
    EXPECT_EQ(unknown->json()["error"]["type"], "not_found_error") << path;
  }
  const HttpHeaders version = {{"anthropic-version", "2023-06-01"}};
  EXPECT_EQ(ask("POST", "/v1/files", "{}", version)->json()["type"], "error");
  EXPECT_EQ(ask("GET", "/v1/models/other", "", version)->json()["type"], "error");
  EXPECT_FALSE(ask("POST", "/v1/files", "{}")->json().contains("type"));
  EXPECT_FALSE(ask("POST", "/v1/chat/completions", "[]", version)->json().contains("type"));
}

TEST_F(Messages, models_are_listed_as_anthropics_clients_read_them) {
  const HttpHeaders version = {{"anthropic-version", "2023-06-01"}};
  const Json list = ask("GET", "/v1/models", "", version)->json();
  ASSERT_EQ(list["data"].size(), 1U);
  const Json& model = list["data"][0];
  EXPECT_EQ(model["type"], "model");
  EXPECT_EQ(model["id"], "m");
  EXPECT_EQ(model["display_name"], "m");
  EXPECT_THAT(model["created_at"].get<std::string>(), ::testing::MatchesRegex("20..-..-..T..:..:..Z"));
  EXPECT_EQ(list["has_more"], false);
  EXPECT_EQ(list["first_id"], "m");
  EXPECT_EQ(list["last_id"], "m");
  EXPECT_EQ(ask("GET", "/v1/models/m", "", version)->json(), model);
  EXPECT_EQ(ask("GET", "/v1/models")->json()["object"], "list");
}

TEST_F(Messages, what_a_request_loses_is_told_to_whoever_runs_the_server_too) {
  std::vector<std::string> told;
  open({.tell_loss = [&](std::string_view line) { told.emplace_back(line); }});
  const Json body = {{"messages", history()}, {"mcp_servers", {{{"name", "x"}}}}, {"max_tokens", 1}};
  EXPECT_EQ(tell(body)->status(), 200);
  EXPECT_EQ(tell(body)->status(), 200);
  EXPECT_THAT(told, ::testing::ElementsAre("a request lost something: mcp_servers: has no effect"));
}

// Files that a tool read, one behind the other; each says a code.
Json files_read(int n) {
  Json messages = Json::array({{{"role", "user"}, {"content", "Read the files."}}});
  for (int i = 0; i < n; ++i) {
    std::string text =
        "The code of the " + std::string(i == 0 ? "north" : "south") + " gate is " + std::to_string(4711 + i) + ". ";
    for (int line = 0; line < 12; ++line) text += "The warden keeps the bridge by night. ";
    const std::string id = "call" + std::to_string(i);
    const Json use = {{"type", "tool_use"}, {"id", id}, {"name", i == 1 ? "list" : "read"}, {"input", Json::object()}};
    const Json result = {{"type", "tool_result"}, {"tool_use_id", id}, {"content", text}};
    messages.push_back({{"role", "assistant"}, {"content", Json::array({use})}});
    messages.push_back({{"role", "user"}, {"content", Json::array({result})}});
  }
  return messages;
}

Json clearing(int trigger, int keep) {
  return {{"edits", Json::array({{{"type", "clear_tool_uses_20250919"},
                                  {"trigger", {{"type", "input_tokens"}, {"value", trigger}}},
                                  {"keep", {{"type", "tool_uses"}, {"value", keep}}}}})}};
}

TEST_F(Messages, what_is_cleared_leaves_and_is_counted_and_comes_back_when_it_is_asked_for) {
  Json history = files_read(4);
  history.push_back({{"role", "user"}, {"content", "Who keeps the bridge?"}});
  const Json plain = tell({{"messages", history}})->json();
  EXPECT_FALSE(plain.contains("context_management"));
  const Json counted =
      tell({{"messages", history}, {"context_management", clearing(100, 1)}}, "/v1/messages/count_tokens")->json();
  const int n_whole = counted["context_management"]["original_input_tokens"];
  EXPECT_LT(counted["input_tokens"], n_whole);

  // Where there is room, a question brings back what may speak of it, cleared or not.
  const Json cleared =
      tell({{"messages", history}, {"context_management", clearing(100, 1)}, {"ebb", {{"recall", {{"blocks", 1}}}}}})
          ->json();
  const Json& edit = cleared["context_management"]["applied_edits"][0];
  EXPECT_EQ(edit["type"], "clear_tool_uses_20250919");
  EXPECT_EQ(edit["cleared_tool_uses"], 3);
  EXPECT_EQ(edit["cleared_input_tokens"].get<int>(), n_whole - counted["input_tokens"].get<int>());
  const Json& usage = cleared["usage"];
  EXPECT_EQ(cleared["ebb"]["prompt"]["holes"], 0);
  EXPECT_EQ(usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>() +
                edit["cleared_input_tokens"].get<int>(),
            n_whole);
  EXPECT_GT(usage["cache_read_input_tokens"], 0) << "what stands before and behind stays valid";
  EXPECT_LT(cleared["ebb"]["hot_tokens"], plain["ebb"]["hot_tokens"]);

  // What comes back to be seen counts no more than what stays away, in a stream's first event as in its last.
  for (const char* marker : {"North", "South"}) {
    Json other = files_read(4);
    other.push_back({{"role", "user"}, {"content", std::string(marker) + ": what is the code of the north gate?"}});
    const auto stream = tell({{"messages", other}, {"context_management", clearing(100, 1)}, {"stream", true}});
    std::vector<int> sums;
    for (const std::string& data : events(stream->body())) {
      const Json event = Json::parse(data);
      const Json& told = event.contains("message") ? event["message"] : event;
      if (!told.contains("usage")) continue;
      sums.push_back(told["usage"]["input_tokens"].get<int>() + told["usage"]["cache_read_input_tokens"].get<int>());
    }
    ASSERT_EQ(sums.size(), 2U);
    EXPECT_EQ(sums[0], sums[1]);
  }

  history.push_back({{"role", "assistant"}, {"content", cleared["content"]}});
  history.push_back({{"role", "user"}, {"content", "What is the code of the north gate?"}});
  const Json asked = tell({{"messages", history}, {"context_management", clearing(100, 1)}})->json();
  EXPECT_THAT(asked["content"][0]["text"].get<std::string>(), HasSubstr("4711"));
  EXPECT_GT(asked["ebb"]["cleared_in_sight"], 0);
  // Where its tokens came from is all of the prompt; of them usage has those that are not cleared, in sight or not.
  for (const Json& answer : {plain, cleared, asked}) {
    int n_tokens = 0;
    for (const auto& [origin, n] : answer["ebb"]["prompt"].items()) n_tokens += origin == "cleared" ? 0 : n.get<int>();
    EXPECT_EQ(n_tokens - answer["ebb"]["cleared_in_sight"].get<int>(),
              answer["usage"]["input_tokens"].get<int>() + answer["usage"]["cache_read_input_tokens"].get<int>())
        << answer["ebb"]["prompt"] << answer["usage"] << answer["ebb"]["cleared_in_sight"];
  }
  EXPECT_LT(asked["ebb"]["computed_again"].get<int>() + asked["usage"]["input_tokens"].get<int>(), 120)
      << "nothing of what is cleared is computed again";
  // Whoever no longer clears has all of it again.
  const Json again = tell({{"messages", history}})->json();
  EXPECT_EQ(again["ebb"]["prompt"]["cleared"], 0);
  EXPECT_EQ(again["ebb"]["prompt"]["holes"], 0);
}

TEST_F(Messages, edits_wait_for_their_trigger_and_leave_what_they_exclude) {
  const Json history = files_read(4);
  const auto applied = [&](Json management) {
    return tell({{"messages", history}, {"context_management", std::move(management)}})
        ->json()["context_management"]["applied_edits"];
  };
  EXPECT_TRUE(applied(clearing(100'000, 1)).empty());
  Json excluding = clearing(0, 0);
  excluding["edits"][0]["exclude_tools"] = {"list"};
  EXPECT_EQ(applied(excluding)[0]["cleared_tool_uses"], 3);
  Json much = clearing(0, 3);
  much["edits"][0]["clear_at_least"] = {{"type", "input_tokens"}, {"value", 1000}};
  EXPECT_TRUE(applied(much).empty());
  Json by_uses = clearing(0, 2);
  by_uses["edits"][0]["trigger"] = {{"type", "tool_uses"}, {"value", 4}};
  EXPECT_TRUE(applied(by_uses).empty());
  by_uses["edits"][0]["trigger"]["value"] = 3;
  EXPECT_EQ(applied(by_uses)[0]["cleared_tool_uses"], 2);
}

TEST_F(Messages, results_that_fill_no_block_stay_and_that_is_said) {
  Json history = files_read(2);
  for (Json& one : history) {
    if (one["role"] != "user" || !one["content"].is_array()) continue;
    for (Json& block : one["content"]) {
      if (block["type"] == "tool_result") block["content"] = "ok";
    }
  }
  const Json said = tell({{"messages", history}, {"context_management", clearing(0, 0)}})->json();
  EXPECT_TRUE(said["context_management"]["applied_edits"].empty()) << said;
  EXPECT_THAT(said["ebb"]["warnings"].dump(), HasSubstr("fills no block of")) << said;
}

TEST_F(Messages, a_request_whose_messages_say_nothing_is_told_so) {
  const auto refused = tell({{"messages", {{{"role", "user"}, {"content", Json::array()}}}}});
  EXPECT_EQ(refused->status(), 400);
  EXPECT_THAT(refused->json().dump(), HasSubstr("the content of each message is empty"));
}

TEST_F(Messages, a_stream_tells_what_was_cleared_with_its_end) {
  const auto kept = tell({{"messages", files_read(3)}, {"stream", true}, {"context_management", clearing(0, 1)}});
  const std::size_t at = kept->body().find("event: message_delta\ndata: ");
  ASSERT_NE(at, std::string::npos);
  const std::size_t begin = kept->body().find('{', at);
  const Json ended = Json::parse(kept->body().substr(begin, kept->body().find('\n', begin) - begin));
  EXPECT_EQ(ended["context_management"]["applied_edits"][0]["cleared_tool_uses"], 2);
}

TEST_F(Messages, a_message_that_says_so_is_cleared_in_a_chat_too) {
  std::string text = "The code of the north gate is 4711. ";
  for (int line = 0; line < 20; ++line) text += "The warden keeps the bridge by night. ";
  Json messages = Json::array({{{"role", "user"}, {"content", text}, {"ebb", {{"cleared", true}}}},
                               {{"role", "assistant"}, {"content", "Noted."}},
                               {{"role", "user"}, {"content", "Who keeps the bridge?"}}});
  const Json body = {{"messages", messages}, {"max_tokens", 8}, {"temperature", 0}};
  const Json answer = ask("POST", "/v1/chat/completions", body.dump())->json();
  EXPECT_GT(answer["ebb"]["prompt"]["cleared"].get<int>() + answer["ebb"]["cleared_in_sight"].get<int>(), 100);
}

}  // namespace
}  // namespace ebb::messages_test
