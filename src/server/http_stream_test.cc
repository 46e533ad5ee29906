// Streams, and clients that leave or do not read.
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/http.h"
#include "server/http_test_client.h"
#include "server/http_test_desk.h"
#include "server/sse.h"

namespace ebb {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kHours{10'000'000};
constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(HttpStream, writes_reach_the_client_one_by_one) {
  TestDesk desk;
  const auto server = start_test_server({}, desk.handler());
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.post("/", "{}"));
  const TestCase given = desk.take();
  ASSERT_TRUE(given.responder);
  given.responder->begin_stream({.headers = sse_headers()});
  ASSERT_TRUE(client.read_until("Content-Type: text/event-stream\r\n"));
  ASSERT_TRUE(client.read_until("Transfer-Encoding: chunked\r\n\r\n"));
  for (const std::string text : {"one", "two", "three"}) {
    std::string event;
    append_sse(event, text);
    EXPECT_GT(given.responder->write(event), 0u);
    ASSERT_TRUE(client.read_until("data: " + text + "\n\n"));  // while the stream is open
  }
  EXPECT_FALSE(given.responder->is_closed());
  given.responder->finish();
  EXPECT_TRUE(given.responder->is_closed());
  ASSERT_TRUE(client.read_until("0\r\n\r\n"));
  ASSERT_TRUE(client.get("/next"));  // on the same connection
  const TestCase next = desk.take();
  ASSERT_TRUE(next.responder);
  next.responder->send({.body = "next"});
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "next");
  EXPECT_EQ(server->counters().n_accepted, 1u);
}

TEST(HttpStream, an_empty_write_does_not_end_it) {
  const auto server = start_test_server({}, [](const HttpRequest&, const std::shared_ptr<Responder>& responder) {
    responder->begin_stream({});
    responder->write("a");
    responder->write("");
    responder->write("b");
    responder->finish();
  });
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.get("/"));
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer && answer->whole);
  EXPECT_EQ(answer->body, "ab");
}

TEST(HttpStream, an_old_clients_stream_ends_with_the_connection) {
  const auto server = start_test_server({}, [](const HttpRequest&, const std::shared_ptr<Responder>& responder) {
    responder->begin_stream({});
    responder->write("a");
    responder->write("b");
    responder->finish();
  });
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->headers.contains("transfer-encoding"));
  EXPECT_EQ(answer->headers.at("connection"), "close");
  EXPECT_EQ(answer->body, "ab");
}

TEST(HttpStream, head_of_a_stream_is_its_headers_only) {
  const auto server = start_test_server({}, [](const HttpRequest&, const std::shared_ptr<Responder>& responder) {
    responder->begin_stream({.ping = "p", .ping_after = milliseconds(1)});
    responder->write("a");
    responder->finish();
  });
  HttpTestClient client(server->port());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(client.send("HEAD / HTTP/1.1\r\nHost: t\r\n\r\n"));
    const auto answer = client.read_answer(true);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
  }
}

TEST(HttpStream, silence_is_filled_with_pings) {
  TestDesk desk;
  const auto server = start_test_server({}, desk.handler());
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.get("/"));
  const TestCase given = desk.take();
  ASSERT_TRUE(given.responder);
  given.responder->begin_stream({.ping = std::string(kSsePing), .ping_after = milliseconds(5)});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(client.read_until("3\r\n:\n\n\r\n"));  // nobody writes
  given.responder->write("text");
  ASSERT_TRUE(client.read_until("4\r\ntext\r\n"));
  ASSERT_TRUE(client.read_until("3\r\n:\n\n\r\n"));
  given.responder->finish();
  ASSERT_TRUE(client.read_until("0\r\n\r\n"));
}

enum class Leave { kClose, kReset, kCloseHalf };

class HttpLeave : public testing::TestWithParam<Leave> {
 protected:
  static void leave(HttpTestClient& client) {
    if (GetParam() == Leave::kClose) client.close();
    if (GetParam() == Leave::kReset) client.reset();
    if (GetParam() == Leave::kCloseHalf) client.close_sending_half();
  }
};

TEST_P(HttpLeave, is_noticed_while_nothing_was_answered) {
  TestDesk desk;
  const auto server = start_test_server({}, desk.handler());
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.post("/", "{}"));
  const TestCase given = desk.take();
  ASSERT_TRUE(given.responder);
  TestSignal left;
  ASSERT_TRUE(given.responder->on_close([&] { left.give(); }));
  EXPECT_FALSE(given.responder->is_closed());
  leave(client);
  ASSERT_TRUE(left.comes());
  EXPECT_TRUE(given.responder->is_closed());
  EXPECT_FALSE(given.responder->on_close([] {}));
  given.responder->begin_stream({});  // too late, and harmless
  EXPECT_EQ(given.responder->write("x"), 0u);
  given.responder->finish();
  EXPECT_TRUE(becomes_true([&] { return server->counters().n_connections == 0; }));
  EXPECT_EQ(server->counters().n_left, 1u);
  EXPECT_EQ(server->counters().body_bytes, 0u);
  EXPECT_EQ(left.n_given(), 1);
}

TEST_P(HttpLeave, is_noticed_in_a_silent_stream) {
  TestDesk desk;
  const auto server = start_test_server({}, desk.handler());
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.get("/"));
  const TestCase given = desk.take();
  ASSERT_TRUE(given.responder);
  TestSignal left;
  ASSERT_TRUE(given.responder->on_close([&] { left.give(); }));
  given.responder->begin_stream({});
  given.responder->write("x");
  ASSERT_TRUE(client.read_until("1\r\nx\r\n"));
  leave(client);
  ASSERT_TRUE(left.comes());
  EXPECT_EQ(given.responder->write("y"), 0u);
}

TEST_P(HttpLeave, is_noticed_behind_a_request_that_came_early) {
  TestDesk desk;
  const auto server = start_test_server({}, desk.handler());
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.get("/first"));
  const TestCase given = desk.take();
  ASSERT_TRUE(given.responder);
  TestSignal left;
  ASSERT_TRUE(given.responder->on_close([&] { left.give(); }));
  ASSERT_TRUE(client.get("/second"));
  leave(client);
  ASSERT_TRUE(left.comes());
  EXPECT_EQ(desk.n_waiting(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Ways, HttpLeave, testing::Values(Leave::kClose, Leave::kReset, Leave::kCloseHalf));

TEST(HttpStream, a_client_that_has_its_answer_does_not_leave_it) {
  TestDesk desk;
  const auto server = start_test_server({}, desk.handler());
  TestSignal left;
  {
    HttpTestClient client(server->port());
    ASSERT_TRUE(client.get("/"));
    const TestCase given = desk.take();
    ASSERT_TRUE(given.responder);
    ASSERT_TRUE(given.responder->on_close([&] { left.give(); }));
    given.responder->send({.body = "x"});
    ASSERT_TRUE(client.read_answer());
  }
  EXPECT_TRUE(becomes_true([&] { return server->counters().n_connections == 0; }));
  EXPECT_EQ(left.n_given(), 0);
  EXPECT_EQ(server->counters().n_left, 0u);
}

TEST(HttpStream, abort_and_letting_go_are_no_end_of_stream) {
  TestDesk desk;
  const auto server = start_test_server({}, desk.handler());
  for (const bool let_go : {false, true}) {
    HttpTestClient client(server->port());
    ASSERT_TRUE(client.get("/"));
    TestCase given = desk.take();
    ASSERT_TRUE(given.responder);
    given.responder->begin_stream({});
    given.responder->write("half of it");
    ASSERT_TRUE(client.read_until("half of it\r\n"));
    if (let_go) {
      given.responder.reset();
    } else {
      given.responder->abort();
    }
    EXPECT_FALSE(client.read_until("0\r\n\r\n"));  // the connection ends, the body does not
  }
}

TEST(HttpStream, a_client_that_reads_nothing_is_dropped_for_time) {
  TestDesk desk;
  const auto server = start_test_server({.write_timeout = milliseconds(50)}, desk.handler());
  HttpTestClient client(server->port());
  client.take_little();
  ASSERT_TRUE(client.get("/"));
  const TestCase given = desk.take();
  ASSERT_TRUE(given.responder);
  TestSignal dropped;
  ASSERT_TRUE(given.responder->on_close([&] { dropped.give(); }));
  given.responder->begin_stream({});
  given.responder->write(std::string(8 * kMiB, 'x'));  // more than the kernel holds; then nothing
  ASSERT_TRUE(dropped.comes());
  EXPECT_EQ(server->counters().n_too_slow, 1u);
}

TEST(HttpStream, a_client_that_reads_nothing_is_dropped_for_bytes) {
  TestDesk desk;
  const auto server = start_test_server({.max_queued_bytes = kMiB, .write_timeout = kHours}, desk.handler());
  HttpTestClient client(server->port());
  client.take_little();
  ASSERT_TRUE(client.get("/"));
  const TestCase given = desk.take();
  ASSERT_TRUE(given.responder);
  TestSignal dropped;
  ASSERT_TRUE(given.responder->on_close([&] { dropped.give(); }));
  given.responder->begin_stream({});
  const std::string piece(kMiB / 16, 'x');
  std::size_t most = 0;
  for (int i = 0; i < 1000 && !given.responder->is_closed(); ++i) most = std::max(most, given.responder->write(piece));
  ASSERT_TRUE(dropped.comes());
  EXPECT_EQ(server->counters().n_too_slow, 1u);
  EXPECT_GT(most, kMiB);
  EXPECT_LE(most, kMiB + piece.size() + 64);
}

TEST(HttpStream, a_stalled_write_delays_no_end) {
  TestDesk desk;
  const auto server = start_test_server({.max_queued_bytes = 9 * kMiB, .write_timeout = kHours}, desk.handler());
  for (const bool abort : {false, true}) {
    HttpTestClient client(server->port());
    client.take_little();
    ASSERT_TRUE(client.get("/"));
    const TestCase given = desk.take();
    ASSERT_TRUE(given.responder);
    given.responder->begin_stream({});
    given.responder->write(std::string(8 * kMiB, 'x'));
    // The kernel has taken what it may hold: from here on a write is pending.
    ASSERT_TRUE(becomes_true([&] { return given.responder->write("") < 8 * kMiB; }));
    given.responder->write(std::string(4 * kMiB, 'y'));
    if (abort) {
      given.responder->abort();
    } else {
      EXPECT_EQ(given.responder->write("too much"), 0u);
    }
    EXPECT_TRUE(becomes_true([&] { return server->counters().n_connections == 0; }));
  }
  EXPECT_EQ(server->counters().n_too_slow, 1u);
}

TEST(HttpStream, a_writer_that_holds_text_back_loses_no_client_and_no_text) {
  TestDesk desk;
  const auto server = start_test_server({.max_queued_bytes = kMiB}, desk.handler());
  HttpTestClient client(server->port());
  client.take_little();
  ASSERT_TRUE(client.get("/"));
  const TestCase given = desk.take();
  ASSERT_TRUE(given.responder);
  given.responder->begin_stream({});
  std::string all;
  std::string held;
  std::size_t queued = 0;
  std::size_t n_held = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string piece = fmt::format("{:04000}", i);
    all += piece;
    held += piece;
    if (queued >= kMiB / 4) {
      ++n_held;
      continue;
    }
    queued = given.responder->write(held);
    held.clear();
  }
  EXPECT_GT(n_held, 100u);
  given.responder->write(held);
  given.responder->finish();
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer && answer->whole);
  EXPECT_TRUE(answer->body == all);
  EXPECT_EQ(server->counters().n_too_slow, 0u);
}

TEST(HttpStream, writers_of_many_streams_do_not_meet) {
  constexpr int kStreams = 100;
  constexpr int kWrites = 40;
  TestDesk desk;
  const auto server = start_test_server({.n_io_threads = 2}, desk.handler());
  std::vector<HttpTestClient> clients;
  std::vector<TestCase> cases;
  for (int i = 0; i < kStreams; ++i) {
    clients.emplace_back(server->port());
    ASSERT_TRUE(clients.back().get(fmt::format("/{}", i)));
    cases.push_back(desk.take());
    ASSERT_TRUE(cases.back().responder);
  }
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w) {
    writers.emplace_back([&cases, w] {
      for (int i = w; i < kStreams; i += 2) cases[static_cast<std::size_t>(i)].responder->begin_stream({});
      for (int n = 0; n < kWrites; ++n) {
        for (int i = w; i < kStreams; i += 2) {
          const TestCase& given = cases[static_cast<std::size_t>(i)];
          given.responder->write(fmt::format("{}:{} ", given.request.path, n));
        }
      }
      for (int i = w; i < kStreams; i += 2) cases[static_cast<std::size_t>(i)].responder->finish();
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (int i = 0; i < kStreams; ++i) {
    const auto answer = clients[static_cast<std::size_t>(i)].read_answer();
    ASSERT_TRUE(answer && answer->whole);
    std::string expected;
    for (int n = 0; n < kWrites; ++n) expected += fmt::format("/{}:{} ", i, n);
    EXPECT_EQ(answer->body, expected);
  }
}

}  // namespace
}  // namespace ebb
