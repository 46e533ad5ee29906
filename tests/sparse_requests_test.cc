// How a request has its prompt read, over HTTP: what it says, what the server says where it does not, and what is refused.
#include <gmock/gmock.h>

#include "tests/api_fixture.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

class SparseRequests : public Server {
 protected:
  static Json long_talk() {
    std::string text = "Read this:";
    for (int i = 0; i < 60; ++i) text += " The shepherd crossed the quiet harbour before the rain began.";
    return Json::array({user(text)});
  }

  Json say(const Json& messages, const std::string& scheme, const std::string& client) {
    Json more = {{"max_tokens", 2}};
    if (!scheme.empty()) more["kv_sparse_prompt"] = scheme;
    const auto reply = chat(messages, more, {{"x-session-id", client}});
    EXPECT_EQ(reply->status(), 200) << reply->body();
    return reply->json()["ebb"];
  }
};

TEST_F(SparseRequests, read_a_prompt_as_they_say_and_as_the_server_does_where_they_say_nothing) {
  const Json messages = long_talk();
  EXPECT_EQ(ask("GET", "/props")->json()["kv_sparse_prompt"], "none");
  const Json dense = say(messages, "", "one");
  EXPECT_EQ(dense["kv_sparse_prompt"], "none");
  const Json sparse = say(messages, "xattention:threshold=0.5,tail=10", "two");
  EXPECT_EQ(sparse["kv_sparse_prompt"], "xattention:threshold=0.5,stride=8,tail=10");
  EXPECT_EQ(sparse["prompt"]["new"], dense["prompt"]["new"]) << "what was read otherwise is nobody else's";
  const Json alike = say(messages, "xattention:threshold=0.5,tail=10", "three");
  EXPECT_LT(alike["prompt"]["new"], 64) << alike;
  EXPECT_EQ(say(messages, "none", "four")["prompt"]["new"], say(messages, "", "five")["prompt"]["new"]);
}

// Without a session id whose rows they are is told by what they say and by how they were read.
TEST_F(SparseRequests, that_name_no_session_go_on_only_where_prompts_are_read_as_theirs) {
  const Json messages = long_talk();
  const auto ask_for = [&](const std::string& scheme) {
    Json more = {{"max_tokens", 2}};
    if (!scheme.empty()) more["kv_sparse_prompt"] = scheme;
    return chat(messages, more, {})->json()["ebb"]["prompt"];
  };
  const Json sparse = ask_for("xattention:threshold=0.5,tail=10");
  const Json dense = ask_for("none");
  EXPECT_EQ(dense["new"], sparse["new"]) << dense;
  EXPECT_LE(ask_for("")["new"], 128) << "as the server reads them; the end of what is sent again is computed again";
  EXPECT_LE(ask_for("xattention:threshold=0.5,tail=10")["new"], 128);
}

TEST_F(SparseRequests, every_route_that_generates_takes_it) {
  const auto reply_of = [&](const std::string& path, Json body) {
    body.update({{"kv_sparse_prompt", "tri_shape:recent=64,start=64,chunk=64"}, {"max_tokens", 2}});
    const auto reply = ask("POST", path, body.dump());
    EXPECT_EQ(reply->status(), 200) << path << reply->body();
    return reply->json()["ebb"]["kv_sparse_prompt"];
  };
  const char* const told = "tri_shape:start=64,recent=64,chunk=64,tail=100";
  EXPECT_EQ(reply_of("/v1/chat/completions", {{"messages", long_talk()}}), told);
  EXPECT_EQ(reply_of("/v1/responses", {{"input", "Hello."}}), told);
  EXPECT_EQ(reply_of("/v1/completions", {{"prompt", "One"}}), told);
  EXPECT_EQ(reply_of("/completion", {{"prompt", "Hello."}}), told);
}

TEST_F(SparseRequests, what_cannot_be_is_refused_with_what_can) {
  std::string many_umlauts = "x";  // a cut at any even number of bytes splits one
  for (int i = 0; i < 2000; ++i) many_umlauts += "\u00e4";
  const std::vector<std::pair<Json, std::string>> refusals = {
      {"sparse", "there are none, tri_shape, xattention"},
      {"xattention:threshold=2", "threshold"},
      {"xattention:stride=3", "2, 4, 8 or 16"},
      {"tri_shape:recent=100", "multiples of the block size"},
      {"tri_shape:", "no parameter behind the colon"},
      {many_umlauts, "no sparse prompt is called"},
      {5, "must be a string"},
      {Json::array({"none"}), "must be a string"},
  };
  for (const auto& [scheme, reason] : refusals) {
    const auto reply = chat(long_talk(), {{"max_tokens", 2}, {"kv_sparse_prompt", scheme}}, {});
    EXPECT_EQ(reply->status(), 400) << scheme;
    EXPECT_THAT(reply->body(), HasSubstr(reason)) << scheme;
  }
}

}  // namespace
}  // namespace ebb
