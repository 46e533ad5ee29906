// What streams tell while they come: how far the prompt is, and the timings so far.
#include <map>

#include <gtest/gtest.h>

#include "tests/api_fixture.h"

namespace ebb {
namespace {

class Progress : public Server {
 protected:
  // The parts of a stream from `path`, without [DONE].
  std::vector<Json> stream(const std::string& path, Json body) {
    body.update({{"stream", true}, {"temperature", 0}, {"max_tokens", 6}});
    const auto kept = ask("POST", path, body.dump(), {{"x-session-id", "ses"}});
    EXPECT_EQ(kept->status(), 200) << kept->body();
    std::vector<Json> parts;
    for (const std::string& data : events(kept->body())) {
      if (data != "[DONE]") parts.push_back(Json::parse(data));
    }
    return parts;
  }

  static std::vector<Json> told(const std::vector<Json>& parts, const char* name) {
    std::vector<Json> all;
    for (const Json& part : parts) {
      if (part.contains(name)) all.push_back(part[name]);
    }
    return all;
  }
};

TEST_F(Progress, a_prompts_progress_goes_from_what_was_cached_to_all_of_it_and_ends_before_the_first_word) {
  const Json asks = {{"return_progress", true}, {"stream_options", {{"include_usage", true}}}};
  Json body = asks;
  body["messages"] = Json::array({user(filler(32))});
  for (const int turn : {1, 2}) {
    const std::vector<Json> parts = stream("/v1/chat/completions", body);
    const std::vector<Json> all = told(parts, "prompt_progress");
    ASSERT_GE(all.size(), turn == 1 ? 3U : 2U) << "the beginning, and each step";
    const Json& usage = parts.back()["usage"];
    EXPECT_EQ(all.front()["processed"], all.front()["cache"]);
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i]["total"], usage["prompt_tokens"]);
      EXPECT_TRUE(all[i]["time_ms"].is_number_integer());
      EXPECT_EQ(parts[i + 1]["prompt_progress"], all[i]) << "behind the first chunk and before any word";
      EXPECT_EQ(parts[i + 1]["choices"][0]["delta"]["role"], "assistant");
      if (i == 0) continue;
      EXPECT_GT(all[i]["processed"], all[i - 1]["processed"]);
    }
    EXPECT_EQ(all.back()["processed"], usage["prompt_tokens"]);
    EXPECT_EQ(all.back()["cache"], usage["prompt_tokens_details"]["cached_tokens"]);
    EXPECT_EQ(all.back()["cache"].get<int>() > 0, turn == 2);
    body["messages"].push_back({{"role", "assistant"}, {"content", "Noted."}});
    body["messages"].push_back(user("What is the code of the north gate?"));
  }
}

TEST_F(Progress, text_completions_tell_it_too_in_their_own_shapes) {
  const Json body = {{"prompt", filler(24)}, {"return_progress", true}};
  const std::vector<Json> openai = stream("/v1/completions", body);
  ASSERT_GE(told(openai, "prompt_progress").size(), 2U);
  EXPECT_EQ(openai[0]["choices"][0]["text"], "");
  EXPECT_EQ(openai[0]["object"], "text_completion");
  const std::vector<Json> native = stream("/completion", body);
  ASSERT_GE(told(native, "prompt_progress").size(), 2U);
  EXPECT_EQ(native[0]["content"], "");
  EXPECT_EQ(native[0]["stop"], false);
  EXPECT_EQ(told(native, "prompt_progress").back()["cache"], native.back()["tokens_cached"]);
}

TEST_F(Progress, timings_are_told_with_each_word_and_are_those_so_far) {
  const Json chat = {{"messages", Json::array({user(filler(4))})}};
  const Json text = {{"prompt", "The code of"}};
  for (const auto& [path, body] :
       std::map<std::string, Json>{{"/v1/chat/completions", chat}, {"/v1/completions", text}, {"/completion", text}}) {
    Json asks = body;
    asks["timings_per_token"] = true;
    const std::vector<Json> all = told(stream(path, asks), "timings");
    ASSERT_GE(all.size(), 2U) << path;
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i]["cache_n"].get<int>() + all[i]["prompt_n"].get<int>(),
                all[0]["cache_n"].get<int>() + all[0]["prompt_n"].get<int>());
      if (i == 0) continue;
      EXPECT_GE(all[i]["predicted_n"], all[i - 1]["predicted_n"]);
    }
    EXPECT_LT(all.front()["predicted_n"], all.back()["predicted_n"]) << path;
  }
}

TEST_F(Progress, nothing_of_it_is_told_unasked_or_in_a_whole_answer) {
  const std::vector<Json> parts = stream("/v1/chat/completions", {{"messages", Json::array({user("Hello")})}});
  EXPECT_TRUE(told(parts, "prompt_progress").empty());
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) EXPECT_FALSE(parts[i].contains("timings"));
  const auto whole = chat(Json::array({user("Hello")}), {{"return_progress", true}});
  EXPECT_FALSE(whole->json().contains("prompt_progress"));
  EXPECT_EQ(chat(Json::array({user("Hello")}), {{"return_progress", 1}})->status(), 400);
}

}  // namespace
}  // namespace ebb
