// A server that goes down, in peace or by kill -9 in the middle of a stream, and the next one on the same disk.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "tests/files.h"
#include "tests/messages.h"
#include "tests/serve_process.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

class ServeRestart : public ::testing::Test {
 protected:
  void start(const std::vector<std::string>& more = {}) {
    server_.reset();
    std::vector<std::string> flags = {"--kv-budget", "1024",       "--parallel",
                                      "2",           "--kv-store", "ram=16M,disk=" + folder_.path().string()};
    flags.insert(flags.end(), more.begin(), more.end());
    server_.emplace(flags);
    ASSERT_NE(server_->port(), 0);
  }

  static std::string body_of(const Json& messages, const std::string& id, bool stream = false, int max_tokens = 24) {
    return Json({{"messages", messages},
                 {"metadata", {{"user_id", Json({{"session_id", id}}).dump()}}},
                 {"temperature", 0},
                 {"max_tokens", max_tokens},
                 {"stream", stream}})
        .dump();
  }

  [[nodiscard]] Json chat(const Json& messages, const std::string& id) const {
    const ServeAnswer answer = server_->ask("POST", "/v1/chat/completions", body_of(messages, id));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json();
  }

  // A session with a fact, far beyond the budget.
  Json talk(const std::string& id, int code) const {
    Json messages = Json::array({message("user", fmt::format("The code of the north gate is {}.", code))});
    for (int turn = 0; turn < 3; ++turn) {
      const Json reply = chat(messages, id);
      messages.push_back(reply["choices"][0]["message"]);
      messages.push_back(message("user", filler(32)));
    }
    messages.push_back(chat(messages, id)["choices"][0]["message"]);
    return messages;
  }

  // Asks for the fact; nothing but the question is computed.
  void check_goes_on(Json messages, const std::string& id, int code) const {
    messages.push_back(message("user", "What is the code of the north gate?"));
    const Json reply = chat(messages, id);
    EXPECT_THAT(reply["choices"][0]["message"]["content"].get<std::string>(), HasSubstr(std::to_string(code)));
    EXPECT_EQ(reply["ebb"]["prompt"]["recomputed"], 0) << id;
    EXPECT_LE(reply["ebb"]["prompt"]["new"].get<int>(), 64) << id << ": the question, and at most the open block";
    EXPECT_GT(reply["usage"]["prompt_tokens"].get<int>(), 900);
  }

  TemporaryFolder folder_;
  std::optional<ServeProcess> server_;
};

TEST_F(ServeRestart, what_is_wrong_on_the_disk_is_told_to_whoever_runs_the_server) {
  std::filesystem::create_directories(folder_.path() / "sessions");
  std::ofstream(folder_.path() / "sessions" / "lane-00000001.ebb") << "no image";
  start();
  EXPECT_THAT(server_->read_line_with("sessions on disk"), HasSubstr("lane-00000001.ebb"));
  EXPECT_EQ(server_->ask("GET", "/v1/store").body.find("lane-"), std::string::npos);
  EXPECT_GE(server_->metric("ebb:http_requests_total"), 1.0);
}

TEST_F(ServeRestart, after_sigterm_every_session_goes_on_without_a_prefill) {
  start();
  const Json one = talk("one", 4711);
  const Json two = talk("two", 1848);
  EXPECT_EQ(server_->stop().exit_code, 0);
  start();
  const Json sessions = server_->ask("GET", "/v1/sessions").json()["data"];
  ASSERT_EQ(sessions.size(), 2U);
  for (const Json& session : sessions) EXPECT_EQ(session["parked"], true);
  check_goes_on(two, "two", 1848);
  check_goes_on(one, "one", 4711);
}

TEST_F(ServeRestart, sessions_stay_with_their_key_when_the_file_holds_its_hash_instead) {
  const TemporaryFile keys(".txt");
  const auto write = [&](const std::string& text) { std::ofstream(keys.path(), std::ios::trunc) << text; };
  const auto sessions_of = [&](std::string_view key) { return server_->ask("GET", "/v1/sessions", "", key); };
  const ProgramResult made = run_ebb({"key"});
  const std::string key = made.out.substr(0, made.out.find('\n'));

  write("another\n" + key + "\n");
  start({"--api-key-file", keys.path().string()});
  const std::string body = body_of(Json::array({message("user", "The code of the north gate is 4711.")}), "one");
  EXPECT_EQ(server_->ask("POST", "/v1/chat/completions", body, key).status, 200);
  const Json before = sessions_of(key).json()["data"];
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(server_->stop().exit_code, 0);

  write("another\n" + made.out.substr(key.size() + 1));
  start({"--api-key-file", keys.path().string()});
  const Json after = sessions_of(key).json()["data"];
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0]["id"], before[0]["id"]);
  EXPECT_TRUE(sessions_of("another").json()["data"].empty());
  EXPECT_EQ(sessions_of("a-wrong-one").status, 401);
}

TEST_F(ServeRestart, after_kill_9_in_the_middle_of_a_stream_sessions_go_on_from_where_they_settled_last) {
  start();
  const Json one = talk("one", 4711);
  const Json two = talk("two", 1848);
  // Images are written behind, each once its blocks are; the last of both sessions are there when all are.
  for (int i = 0; i < 10'000 && server_->metric("ebb:kept_sessions_waiting") > 0; ++i) continue;
  ASSERT_EQ(server_->metric("ebb:kept_sessions_waiting"), 0);
  Json more = one;
  more.push_back(message("user", filler(20)));
  HttpTestClient client = server_->connect();
  ASSERT_TRUE(
      client.send(ServeProcess::request_text("POST", "/v1/chat/completions", body_of(more, "one", true, 10'000))));
  ASSERT_TRUE(client.read_until("\"content\""));
  server_->kill();
  EXPECT_TRUE(client.sees_end());
  start();
  EXPECT_EQ(server_->metric("ebb:kept_sessions_resumed"), 2);
  EXPECT_EQ(server_->metric("ebb:kept_sessions_refused"), 0);
  check_goes_on(one, "one", 4711);
  check_goes_on(two, "two", 1848);
}

TEST(ServeFlags, a_variable_gives_what_the_command_line_leaves_out_and_a_prefix_stands_before_every_route) {
  ASSERT_EQ(::setenv("EBB_API_PREFIX", "/llm", 1), 0);
  ASSERT_EQ(::setenv("EBB_KV_BUDGET", "512", 1), 0);
  ASSERT_EQ(::setenv("EBB_PARALLEL", "7", 1), 0);
  {
    const ServeProcess server({"-np", "1"});
    ASSERT_NE(server.port(), 0);
    EXPECT_EQ(server.ask("GET", "/health").status, 404);
    EXPECT_EQ(server.ask("GET", "/llm/health").status, 200);
    EXPECT_EQ(server.ask("GET", "/llm/v1/budget").json()["tokens"], 512);
    EXPECT_EQ(server.ask("GET", "/llm/slots").json().size(), 1U);
  }
  for (const char* name : {"EBB_API_PREFIX", "EBB_KV_BUDGET", "EBB_PARALLEL"}) ASSERT_EQ(::unsetenv(name), 0);
}

}  // namespace
}  // namespace ebb
