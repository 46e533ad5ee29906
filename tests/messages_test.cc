// Anthropic's Messages, as Claude Code and the package anthropic speak it: blocks, events in order, usage, errors. What the
// package makes of it: tests/e2e/anthropic_test.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/api_fixture.h"

namespace ebb {
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

}  // namespace
}  // namespace ebb
