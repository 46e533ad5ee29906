// Starting, stopping, and what is left afterwards.
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <unistd.h>

#include "gtest/gtest.h"
#include "server/http.h"
#include "server/http_test_client.h"
#include "server/http_test_desk.h"

namespace ebb {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongGrace{60'000};

std::size_t n_entries(const char* folder) {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++n;
  return n;
}

// A resident set of this process, in bytes.
std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(HttpStop, lets_an_answer_under_way_end_and_closes_the_rest) {
  TestDesk desk;
  const auto server = start_test_server({}, desk.handler());
  HttpTestClient idle(server->port());
  HttpTestClient streaming(server->port());
  HttpTestClient waiting(server->port());
  ASSERT_TRUE(streaming.get("/stream"));
  const TestCase stream = desk.take();
  ASSERT_TRUE(waiting.get("/wait"));
  const TestCase wait = desk.take();
  ASSERT_TRUE(stream.responder && wait.responder);
  stream.responder->begin_stream({});
  stream.responder->write("before ");
  ASSERT_TRUE(streaming.read_until("before \r\n"));

  std::thread stopper([&] { server->stop(kLongGrace); });
  EXPECT_TRUE(idle.sees_end());  // so the stop has begun
  stream.responder->write("after");
  stream.responder->finish();
  wait.responder->send({.body = "answered"});
  EXPECT_TRUE(streaming.read_until("5\r\nafter\r\n0\r\n\r\n"));
  const auto answer = waiting.read_answer();
  stopper.join();  // long before the grace is over
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "answered");
  EXPECT_EQ(answer->headers.at("connection"), "close");
  EXPECT_TRUE(streaming.sees_end());
  EXPECT_FALSE(HttpTestClient(server->port()).connected());
  EXPECT_EQ(server->counters().n_connections, 0u);
}

TEST(HttpStop, closes_what_does_not_end_within_the_grace) {
  TestDesk desk;
  const auto server = start_test_server({}, desk.handler());
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.get("/"));
  const TestCase given = desk.take();
  ASSERT_TRUE(given.responder);
  TestSignal closed;
  ASSERT_TRUE(given.responder->on_close([&] { closed.give(); }));
  given.responder->begin_stream({});
  HttpTestClient half(server->port());
  ASSERT_TRUE(half.send("GET / HTTP/1.1\r\n"));
  server->stop(milliseconds(1));
  EXPECT_EQ(closed.n_given(), 1);
  EXPECT_TRUE(given.responder->is_closed());
  EXPECT_TRUE(client.sees_end());
  EXPECT_TRUE(half.sees_end());
  server->stop(kLongGrace);  // again: nothing
}

TEST(HttpStop, a_responder_may_outlive_its_server) {
  TestDesk desk;
  auto server = start_test_server({}, desk.handler());
  HttpTestClient first(server->port());
  HttpTestClient second(server->port());
  ASSERT_TRUE(first.get("/"));
  const TestCase begun = desk.take();
  ASSERT_TRUE(second.get("/"));
  TestCase unanswered = desk.take();
  ASSERT_TRUE(begun.responder && unanswered.responder);
  begun.responder->begin_stream({});
  server.reset();
  EXPECT_TRUE(begun.responder->is_closed());
  EXPECT_EQ(begun.responder->write("x"), 0u);
  begun.responder->finish();
  begun.responder->abort();
  EXPECT_FALSE(begun.responder->on_close([] {}));
  unanswered.responder.reset();
}

TEST(HttpStop, writers_may_write_while_it_stops) {
  for (int round = 0; round < 20; ++round) {
    TestDesk desk;
    const auto server = start_test_server({.n_io_threads = 2}, desk.handler());
    std::vector<HttpTestClient> clients;
    std::vector<TestCase> cases;
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back(server->port());
      ASSERT_TRUE(clients.back().get("/"));
      cases.push_back(desk.take());
      ASSERT_TRUE(cases.back().responder);
      cases.back().responder->begin_stream({});
    }
    std::atomic<bool> going = false;
    std::thread writer([&] {
      for (bool all_closed = false; !all_closed;) {
        all_closed = true;
        for (const TestCase& given : cases) {
          given.responder->write("text");
          all_closed = all_closed && given.responder->is_closed();
        }
        going = true;
      }
    });
    EXPECT_TRUE(becomes_true([&] { return going.load(); }));
    server->stop(milliseconds(0));
    writer.join();
  }
}

TEST(HttpStop, leaves_no_thread_and_no_descriptor_behind) {
  const std::size_t n_descriptors = n_entries("/proc/self/fd");
  const std::size_t n_threads = n_entries("/proc/self/task");
  for (int round = 0; round < 3; ++round) {
    TestDesk desk;
    const auto server = start_test_server({.n_io_threads = 2}, desk.handler());
    std::vector<HttpTestClient> clients;
    for (int i = 0; i < 10; ++i) {
      clients.emplace_back(server->port());
      const std::string_view requests[] = {"GET / HTTP/1.1\r\nHost: t\r\n\r\n", "GET /", ""};
      ASSERT_TRUE(clients.back().send(requests[i % 3]));
    }
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(desk.take().responder);  // let go: answered with 500
    if (round == 1) clients.clear();
    server->stop(milliseconds(0));
  }
  EXPECT_EQ(n_entries("/proc/self/fd"), n_descriptors);
  EXPECT_EQ(n_entries("/proc/self/task"), n_threads);
}

TEST(HttpStop, the_port_can_be_taken_again_at_once) {
  const auto first = start_test_server({}, echo);
  const std::uint16_t port = first->port();
  HttpTestClient client(port);
  ASSERT_TRUE(client.get("/"));
  ASSERT_TRUE(client.read_answer());
  first->stop(milliseconds(0));  // the server closes first: its side of the connection lingers in the kernel
  auto second = HttpServer::start({.port = port}, echo);
  ASSERT_TRUE(second.ok()) << second.status().message();
}

TEST(HttpLoad, thousands_of_idle_connections_cost_little_and_are_served) {
  constexpr std::size_t kConnections = 2000;
  const auto server = start_test_server({}, echo);
  const auto visit = [&](HttpTestClient& client) {
    ASSERT_TRUE(client.get("/"));
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->status, 200);
  };
  std::vector<HttpTestClient> clients;
  clients.reserve(kConnections);
  const std::size_t before = resident_bytes();
  for (std::size_t i = 0; i < kConnections; ++i) {
    clients.emplace_back(server->port());
    ASSERT_TRUE(clients.back().connected()) << "ulimit -n is too low: two descriptors per connection are needed";
    visit(clients.back());
  }
  EXPECT_EQ(server->counters().n_connections, kConnections);
  const std::size_t per_connection = (resident_bytes() - before) / kConnections;
  // Both sides, of which the client's is a few strings.
  RecordProperty("bytes_per_idle_connection", static_cast<int>(per_connection));
  std::printf("%zu idle connections, %zu bytes of resident memory for each\n", kConnections, per_connection);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(per_connection, 8192u);
#endif
  for (std::size_t i = 0; i < kConnections; i += 97) visit(clients[i]);
  clients.clear();
  EXPECT_TRUE(becomes_true([&] { return server->counters().n_connections == 0; }));
}

}  // namespace
}  // namespace ebb
