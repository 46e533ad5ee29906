// One owner's bodies beside those of others.
#include "gtest/gtest.h"
#include "server/http.h"
#include "server/http_test_client.h"
#include "server/http_test_desk.h"

namespace ebb {
namespace {

HttpBodyShare share_of(const HttpRequest& head) {
  const std::string* const key = head.find_header("key");
  return {.owner = key != nullptr ? *key : "", .most_bytes = 500};
}

std::string head_of(std::string_view key, std::string_view length) {
  return fmt::format("POST / HTTP/1.1\r\nHost: t\r\nKey: {}\r\n{}\r\n\r\n", key, length);
}

int status_of(HttpTestClient& client) {
  const auto answer = client.read_answer();
  return answer && answer->whole ? answer->status : 0;
}

TEST(HttpShares, an_owner_that_announced_as_much_as_it_may_is_refused_and_others_are_served) {
  const auto server = start_test_server({.max_bodies_bytes = 1000, .share_body = share_of}, echo);
  HttpTestClient waiting(server->port());
  ASSERT_TRUE(waiting.send(head_of("alpha", "Content-Length: 400\r\nExpect: 100-continue")));
  ASSERT_TRUE(waiting.read_until("100 Continue"));
  HttpTestClient more(server->port());
  ASSERT_TRUE(more.send(head_of("alpha", "Content-Length: 101\r\nExpect: 100-continue")));
  const auto refusal = more.read_answer();
  ASSERT_TRUE(refusal && refusal->whole);
  EXPECT_EQ(refusal->status, 429);
  EXPECT_NE(refusal->body.find("this key's"), std::string::npos);
  HttpTestClient other(server->port());
  ASSERT_TRUE(other.send(head_of("beta", "Content-Length: 500") + std::string(500, 'x')));
  EXPECT_EQ(status_of(other), 200);
  HttpTestClient fits(server->port());
  ASSERT_TRUE(fits.send(head_of("alpha", "Content-Length: 100") + std::string(100, 'x')));
  EXPECT_EQ(status_of(fits), 200);
}

TEST(HttpShares, what_an_owner_held_is_free_once_it_was_answered_or_left) {
  const auto server = start_test_server({.max_bodies_bytes = 1000, .share_body = share_of}, echo);
  HttpTestClient client(server->port());
  for (const char* key : {"alpha", "alpha", "beta", "alpha"}) {
    ASSERT_TRUE(client.send(head_of(key, "Content-Length: 500") + std::string(500, 'x')));
    EXPECT_EQ(status_of(client), 200) << "on one connection, one after another";
  }
  HttpTestClient leaves(server->port());
  ASSERT_TRUE(leaves.send(head_of("alpha", "Content-Length: 500\r\nExpect: 100-continue")));
  ASSERT_TRUE(leaves.read_until("100 Continue"));
  leaves.close();
  ASSERT_TRUE(becomes_true([&] { return server->counters().body_bytes == 0; }));
  ASSERT_TRUE(client.send(head_of("alpha", "Content-Length: 500") + std::string(500, 'x')));
  EXPECT_EQ(status_of(client), 200);
}

TEST(HttpShares, a_body_that_does_not_say_its_length_is_counted_as_it_comes) {
  const auto server = start_test_server({.share_body = share_of}, echo);
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.send(head_of("alpha", "Transfer-Encoding: chunked") + "258\r\n" + std::string(600, 'x') + "\r\n"));
  EXPECT_EQ(status_of(client), 429);
}

}  // namespace
}  // namespace ebb
