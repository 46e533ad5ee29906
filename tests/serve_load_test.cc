// A server under clients that are too many, too slow, half there, gone or talking nonsense: everybody who asks well is
// answered, nobody gets another's text, and at the end nothing is held.
#include <random>

#include <gmock/gmock.h>

#include "tests/serve_process.h"

namespace ebb {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What docs/http_api.md promises: 1.15 x (weights and their copies 23 MB, frames of 1024 tokens 2 MB) + 64 MB, and 17
// MB of saved blocks. The requests of these tests are small, and how many clients there are must not show.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kCeilingBytes = 1'000'000'000;  // with the sanitizer's own shadow and quarantine
#else
constexpr std::size_t kCeilingBytes = 110'000'000;
#endif

struct Client {
  std::string key;
  int code = 0;
};

class ServeLoad : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.emplace(std::vector<std::string>{"--kv-budget", "1024", "-np", "2", "--kv-store", "ram=16M", "--max-queued",
                                             "8", "--key-queued", "6", "--api-key", "alpha", "--api-key", "beta"});
    ASSERT_NE(server_->port(), 0);
  }

  // Everything is given back, and the server ends in peace within its ceiling.
  void TearDown() override {
    if (!server_ || server_->port() == 0) return;
    EXPECT_EQ(server_->ask("GET", "/health").status, 200);
    EXPECT_TRUE(is_idle());
    for (const char* key : {"alpha", "beta"}) {
      const Json sessions = server_->ask("GET", "/v1/sessions", "", key).json();
      for (const Json& session : sessions["data"]) {
        const std::string path = "/v1/sessions/" + session["id"].get<std::string>();
        EXPECT_EQ(server_->ask("DELETE", path, "", key).status, 200);
      }
    }
    EXPECT_EQ(server_->metric("ebb:sessions", "alpha"), 0);
    EXPECT_EQ(server_->metric("ebb:kv_hot_tokens", "alpha"), 0);
    const ProgramResult end = server_->stop();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    EXPECT_LT(end.peak_resident_bytes, kCeilingBytes);
    for (const char* secret : {"alpha", "beta", "gate"}) EXPECT_THAT(end.err, Not(HasSubstr(secret)));
  }

  // Looks again as long as requests of clients that left are still noticed.
  [[nodiscard]] bool is_idle() const {
    for (int i = 0; i < 10'000; ++i) {
      const double n_left =
          server_->metric("ebb:requests_processing", "alpha") + server_->metric("ebb:requests_deferred", "alpha");
      if (n_left == 0) return true;
    }
    return false;
  }

  static std::string chat_text(const Client& client, bool stream = false, int max_tokens = 12) {
    const auto message = [](const char* role, std::string content) {
      return Json({{"role", role}, {"content", std::move(content)}});
    };
    const Json body = {
        {"messages",
         Json::array({message("user", fmt::format("The code of the north gate is {}.", client.code)),
                      message("assistant", "Noted."), message("user", "What is the code of the north gate?")})},
        {"temperature", 0},
        {"max_tokens", max_tokens},
        {"stream", stream}};
    return ServeProcess::request_text("POST", "/v1/chat/completions", body.dump(), client.key);
  }

  // Checks the answer to a client that asks well; false where it was told to ask again later.
  static bool check_answer(const Client& client, const std::optional<TestAnswer>& answer) {
    EXPECT_TRUE(answer && answer->whole);
    if (!answer) return true;
    if (answer->status == 200) {
      EXPECT_THAT(answer->body, HasSubstr(std::to_string(client.code)));
      return true;
    }
    EXPECT_THAT(answer->status, AnyOf(429, 503)) << answer->body;
    EXPECT_TRUE(answer->headers.contains("retry-after")) << answer->status;
    return false;
  }

  // Somebody who asks well in the middle of it all.
  void expect_service(int code) const {
    const Client client = {.key = "beta", .code = code};
    for (int i = 0; i < 1000; ++i) {
      HttpTestClient socket = server_->connect();
      ASSERT_TRUE(socket.send(chat_text(client)));
      if (check_answer(client, socket.read_answer())) return;
    }
    ADD_FAILURE() << "never answered";
  }

  std::optional<ServeProcess> server_;
};

TEST_F(ServeLoad, ten_times_as_many_clients_as_may_wait_are_told_when_to_come_again_and_all_are_answered) {
  std::vector<Client> left;
  for (int i = 0; i < 100; ++i) left.push_back({.key = i % 2 == 0 ? "alpha" : "beta", .code = 1000 + 7 * i});
  bool any_refused = false;
  for (int round = 0; round < 100 && !left.empty(); ++round) {
    std::vector<HttpTestClient> sockets;
    for (const Client& client : left) {
      sockets.push_back(server_->connect());
      ASSERT_TRUE(sockets.back().send(chat_text(client)));
    }
    std::vector<Client> again;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (!check_answer(left[i], sockets[i].read_answer())) again.push_back(left[i]);
    }
    EXPECT_LT(again.size(), left.size()) << "nobody was answered in a round";
    any_refused = any_refused || !again.empty();
    left = std::move(again);
  }
  EXPECT_TRUE(left.empty());
  EXPECT_TRUE(any_refused);
}

TEST(ServeKeys, one_of_several_keys_leaves_a_slot_to_the_others) {
  const ServeProcess server({"--parallel", "2", "--api-key", "alpha", "--api-key", "beta"});
  const Json endless = {{"prompt", "one"}, {"max_tokens", 1'000'000}, {"ignore_eos", true}, {"stream", true}};
  std::vector<HttpTestClient> greedy;
  for (int i = 0; i < 2; ++i) {
    greedy.push_back(server.connect());
    ASSERT_TRUE(greedy.back().send(ServeProcess::request_text("POST", "/v1/completions", endless.dump(), "alpha")));
  }
  const ServeAnswer answer =
      server.ask("POST", "/v1/completions", Json{{"prompt", "two"}, {"max_tokens", 1}}.dump(), "beta");
  EXPECT_EQ(answer.status, 200) << answer.body;
}

TEST_F(ServeLoad, clients_that_do_not_read_or_do_not_finish_asking_hold_up_nobody) {
  std::vector<HttpTestClient> slow;
  for (int i = 0; i < 4; ++i) {
    slow.push_back(server_->connect());
    slow.back().take_little();
    ASSERT_TRUE(slow.back().send(chat_text({.key = "alpha", .code = 2000 + i}, true, 200)));
  }
  std::vector<HttpTestClient> half_open;
  for (int i = 0; i < 50; ++i) {
    const std::string whole = chat_text({.key = "beta", .code = 3000 + i});
    half_open.push_back(server_->connect());
    ASSERT_TRUE(
        half_open.back().send(std::string_view(whole).substr(0, whole.size() * static_cast<std::size_t>(i) / 50)));
  }
  expect_service(4711);
  for (HttpTestClient& client : slow) client.reset();
  expect_service(4712);
}

TEST_F(ServeLoad, clients_that_vanish_leave_nothing_behind) {
  for (int i = 0; i < 40; ++i) {
    HttpTestClient client = server_->connect();
    const int max_tokens = 10'000;
    // More than may wait are refused, and gone all the same.
    ASSERT_TRUE(
        client.send(chat_text({.key = i % 2 == 0 ? "alpha" : "beta", .code = 5000 + i}, i % 3 != 0, max_tokens)));
    if (i % 4 == 1) (void)client.read_until("HTTP/1.1");
    if (i % 2 == 0) client.reset();
  }
  expect_service(4713);
}

TEST_F(ServeLoad, strangers_cannot_hold_the_room_for_bodies) {
  std::vector<HttpTestClient> strangers;
  for (int i = 0; i < 40; ++i) {  // 2 GB announced, twice what there is room for
    strangers.push_back(server_->connect());
    ASSERT_TRUE(strangers.back().send(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: test\r\nX-Api-Key: wrong\r\nContent-Length: 50000000\r\n\r\n{"));
    const auto answer = strangers.back().read_answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 401);
    EXPECT_EQ(Json::parse(answer->body, nullptr, false)["error"]["type"], "authentication_error");
  }
  expect_service(4715);
}

TEST_F(ServeLoad, a_thousand_malformed_requests_are_refused_one_by_one) {
  std::mt19937_64 random(7);
  const auto draw = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::vector<std::string> bodies = {"{",
                                           "[]",
                                           "null",
                                           "\"x\"",
                                           "{\"messages\":1}",
                                           "{\"messages\":[{}]}",
                                           "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xfe\"}]",
                                           std::string(5000, '['),
                                           "{\"messages\":[],\"stream\":\"yes\"}"};
  const std::vector<std::string> paths = {"/v1/chat/completions", "/v1/completions", "/v1/budget",
                                          "/v1/sessions/import", "/v1/sessions/x/blocks/pin"};
  for (int i = 0; i < 1000; ++i) {
    HttpTestClient client = server_->connect();
    if (i % 2 == 0) {
      ASSERT_TRUE(client.send(
          ServeProcess::request_text("POST", paths[draw(paths.size())], bodies[draw(bodies.size())], "alpha")));
      const auto answer = client.read_answer();
      ASSERT_TRUE(answer) << i;
      EXPECT_GE(answer->status, 400) << answer->body;
      EXPECT_LT(answer->status, 500) << answer->body;
      EXPECT_TRUE(Json::parse(answer->body, nullptr, false).contains("error")) << answer->body;
      continue;
    }
    // A sound request in which some bytes are others, whose end nobody waits for.
    std::string text = chat_text({.key = "alpha", .code = 6000}, false, 1);
    for (std::size_t n = 1 + draw(6); n > 0; --n) text[draw(text.size() / 3)] = static_cast<char>(random());
    (void)client.send(text);
    client.close_sending_half();
    (void)client.sees_end();
  }
  expect_service(4714);
}

}  // namespace
}  // namespace ebb
