// The window that clients see: what it refuses, where replies end in it, and the bound of prompts without one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/api_fixture.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

class WindowRequests : public Server {
 protected:
  std::shared_ptr<Kept> chat_of(int n_sentences, Json more = Json::object()) {
    std::string text;
    for (int i = 0; i < n_sentences; ++i) text += "The warden keeps the bridge by night. ";
    Json body = {{"messages", Json::array({{{"role", "user"}, {"content", text}}})}, {"temperature", 0}};
    body.update(more);
    return ask("POST", "/v1/chat/completions", body.dump());
  }
};

TEST_F(WindowRequests, a_prompt_of_the_windows_size_is_refused_and_a_reply_ends_where_it_does) {
  open({.window_tokens = 256});
  const auto refused = chat_of(60);
  EXPECT_EQ(refused->status(), 400);
  const Json error = refused->json()["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["type"], "exceed_context_size_error");
  EXPECT_EQ(error["n_ctx"], 256);
  const Json answer = chat_of(20, {{"ignore_eos", true}})->json();
  EXPECT_EQ(answer["usage"]["total_tokens"], 256);
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(chat_of(20, {{"ignore_eos", true}, {"max_tokens", 3}})->json()["usage"]["completion_tokens"], 3);
  EXPECT_EQ(ask("GET", "/props", "")->json()["default_generation_settings"]["n_ctx"], 256);
  const Json meta = ask("GET", "/v1/models", "")->json()["data"][0]["meta"];
  EXPECT_EQ(meta["n_ctx"], 256);
  EXPECT_GT(meta["n_ctx_train"], 256);
}

TEST_F(WindowRequests, without_a_window_there_is_a_bound_and_below_it_sessions_go_on) {
  open({.most_prompt_tokens = 1500});
  EXPECT_EQ(chat_of(120)->status(), 200) << "longer than the budget";
  const auto refused = chat_of(200);
  EXPECT_EQ(refused->status(), 400);
  EXPECT_EQ(refused->json()["error"]["n_ctx"], 1500);
  EXPECT_THAT(
      refused->json()["error"]["message"].get<std::string>(),
      HasSubstr("exceeds the available context size (1500 tokens of a prompt, --max-prompt), try increasing it"));
}

TEST_F(WindowRequests, a_model_is_known_by_each_of_its_names) {
  open({.aliases = {"other", "third"}});
  EXPECT_EQ(ask("GET", "/v1/models/third", "")->json()["id"], "m");
  EXPECT_EQ(ask("GET", "/v1/models/fourth", "")->status(), 404);
  EXPECT_EQ(ask("GET", "/v1/models", "")->json()["data"][0]["aliases"], Json({"other", "third"}));
}

TEST_F(WindowRequests, what_holds_where_requests_do_not_say_may_be_any_member) {
  open({.defaults = {.members = {{"max_tokens", 2}, {"ignore_eos", true}}}});
  EXPECT_EQ(chat_of(2)->json()["usage"]["completion_tokens"], 2);
  EXPECT_EQ(chat_of(2, {{"max_tokens", 4}})->json()["usage"]["completion_tokens"], 4);
}

TEST_F(WindowRequests, instructions_that_do_not_fit_are_told) {
  std::string text;
  for (int i = 0; i < 600; ++i) text += "The warden keeps the bridge by night. ";
  const auto told = [&](const std::string& system) {
    const Json messages =
        Json::array({{{"role", "system"}, {"content", system}}, {{"role", "user"}, {"content", "Good day."}}});
    const Json body = {{"messages", messages}, {"max_tokens", 2}};
    return ask("POST", "/v1/chat/completions", body.dump())->json()["ebb"].value("warnings", Json::array()).dump();
  };
  EXPECT_THAT(told(text), HasSubstr("of the system text and tools are not in sight"));
  EXPECT_EQ(told("You keep the bridge."), "[]");
  EXPECT_THAT(ask("GET", "/metrics", "")->body(), ::testing::Not(HasSubstr("ebb:instruction_hole_tokens_total 0\n")));
}

}  // namespace
}  // namespace ebb
