// What clients may not do: too much, too slowly, too many of them, or nonsense.
#include <random>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "server/http.h"
#include "server/http_test_client.h"
#include "server/http_test_desk.h"

namespace ebb {
namespace {

using std::chrono::milliseconds;

HttpAnswer json_error(int status, std::string_view message) {
  return {.headers = {{"Content-Type", "application/json"}}, .body = fmt::format("{{\"{}\":\"{}\"}}", status, message)};
}

// Sends and expects a refusal of that status, after which the connection ends.
void expect_refusal(const HttpServer& server, const std::string& bytes, int status) {
  HttpTestClient client(server.port());
  client.send(bytes);
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer && answer->whole) << bytes.substr(0, 200);
  EXPECT_EQ(answer->status, status) << bytes.substr(0, 200);
  EXPECT_EQ(answer->headers.at("connection"), "close");
  EXPECT_EQ(answer->headers.at("content-type"), "application/json");
  EXPECT_EQ(answer->body.find(fmt::format("{{\"{}\":", status)), 0u) << answer->body;
  EXPECT_TRUE(client.sees_end());
}

void expect_service(const HttpServer& server) {
  HttpTestClient client(server.port());
  ASSERT_TRUE(client.get("/alive"));
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "GET /alive? ");
}

TEST(HttpLimits, headers_that_are_too_long_get431) {
  const auto server = start_test_server({.max_header_bytes = 1000, .error_answer = json_error}, echo);
  expect_refusal(*server, "GET / HTTP/1.1\r\nHost: t\r\nX: " + std::string(1000, 'x') + "\r\n\r\n", 431);
  expect_refusal(*server, "GET /" + std::string(1000, 'x') + " HTTP/1.1\r\nHost: t\r\n\r\n", 431);
  expect_refusal(*server, "GET /" + std::string(100'000, 'x'), 431);
  std::string many = "GET / HTTP/1.1\r\nHost: t\r\n";
  for (int i = 0; i < 200; ++i) many += fmt::format("X{}: y\r\n", i);
  expect_refusal(*server, many + "\r\n", 431);
  expect_service(*server);
}

TEST(HttpLimits, a_body_that_is_too_long_gets413_before_and_while_it_comes) {
  const auto server = start_test_server({.max_body_bytes = 1000, .error_answer = json_error}, echo);
  // Also to a client that waits to be invited, and to one that sends all of it before it reads.
  expect_refusal(*server, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n", 413);
  expect_refusal(*server, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 3000000\r\n\r\n" + std::string(3'000'000, 'x'),
                 413);
  expect_refusal(*server,
                 "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n258\r\n" + std::string(600, 'x') +
                     "\r\n258\r\n" + std::string(600, 'x') + "\r\n",
                 413);
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.post("/", std::string(1000, 'x')));
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
}

TEST(HttpLimits, all_bodies_together_are_bounded) {
  TestDesk desk;
  const auto server =
      start_test_server({.max_body_bytes = 800, .max_bodies_bytes = 1000, .error_answer = json_error}, desk.handler());
  HttpTestClient first(server->port());
  ASSERT_TRUE(first.post("/", std::string(800, 'x')));
  const TestCase given = desk.take();
  ASSERT_TRUE(given.responder);
  HttpTestClient second(server->port());
  ASSERT_TRUE(second.post("/", std::string(800, 'y')));
  const auto refusal = second.read_answer();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 503);
  EXPECT_TRUE(refusal->headers.contains("retry-after"));
  given.responder->send({});
  ASSERT_TRUE(first.read_answer());
  EXPECT_TRUE(becomes_true([&] { return server->counters().body_bytes == 0; }));
  HttpTestClient third(server->port());
  ASSERT_TRUE(third.post("/", std::string(800, 'z')));
  const TestCase next = desk.take();
  ASSERT_TRUE(next.responder);
  next.responder->send({});
}

TEST(HttpLimits, a_body_counts_as_long_as_it_was_announced_before_it_comes) {
  const auto server =
      start_test_server({.max_body_bytes = 800, .max_bodies_bytes = 1000, .error_answer = json_error}, echo);
  HttpTestClient first(server->port());
  ASSERT_TRUE(first.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 800\r\nExpect: 100-continue\r\n\r\n"));
  ASSERT_TRUE(first.read_until("100 Continue"));
  EXPECT_EQ(server->counters().body_bytes, 800u);
  expect_refusal(*server, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 300\r\nExpect: 100-continue\r\n\r\n", 503);
  expect_refusal(*server, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 300\r\n\r\nhello", 503);
  first.close();
  EXPECT_TRUE(becomes_true([&] { return server->counters().body_bytes == 0; }));
  HttpTestClient again(server->port());
  ASSERT_TRUE(again.post("/", std::string(300, 'x')));
  const auto answer = again.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
}

std::optional<HttpAnswer> refuse_strangers(const HttpRequest& head) {
  const std::string* const key = head.find_header("key");
  if (key != nullptr && *key == "right") return std::nullopt;
  return HttpAnswer{.status = 401,
                    .headers = {{"Content-Type", "application/json"}},
                    .body = fmt::format("{{\"401\":\"{} {}?{}\"}}", head.method, head.path, head.query)};
}

TEST(HttpLimits, bodies_of_those_who_are_refused_by_the_head_are_neither_awaited_nor_counted) {
  const auto server =
      start_test_server({.max_bodies_bytes = 1000, .error_answer = json_error, .check_body = refuse_strangers}, echo);
  std::vector<HttpTestClient> strangers;
  for (int i = 0; i < 4; ++i) {
    strangers.emplace_back(server->port());
    ASSERT_TRUE(strangers.back().send("POST /a?b HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\nhello"));
    const auto answer = strangers.back().read_answer();
    ASSERT_TRUE(answer && answer->whole);
    EXPECT_EQ(answer->status, 401);
    EXPECT_EQ(answer->body, "{\"401\":\"POST /a?b\"}");
    EXPECT_EQ(server->counters().body_bytes, 0u);
  }
  HttpTestClient known(server->port());
  ASSERT_TRUE(
      known.send("POST / HTTP/1.1\r\nHost: t\r\nKey: right\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'x')));
  const auto answer = known.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(server->counters().n_requests, 1u);
  EXPECT_EQ(server->counters().n_refused, 4u);
}

TEST(HttpLimits, who_is_refused_by_the_head_gets_the_answer_though_its_body_comes) {
  const auto server = start_test_server({.error_answer = json_error, .check_body = refuse_strangers}, echo);
  for (const char* head : {"Content-Length: 3000000\r\n", "Content-Length: 9\r\nExpect: 100-continue\r\n",
                           "Transfer-Encoding: chunked\r\n"}) {
    expect_refusal(*server, fmt::format("POST / HTTP/1.1\r\nHost: t\r\n{}\r\n{}", head, std::string(3'000'000, 'x')),
                   401);
  }
  // What stands behind the body is no header of the request.
  expect_refusal(*server, "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nKey: right\r\n\r\n",
                 401);
}

TEST(HttpLimits, requests_without_a_body_are_the_handlers_to_refuse) {
  const auto server = start_test_server({.error_answer = json_error, .check_body = refuse_strangers}, echo);
  HttpTestClient client(server->port());
  for (const char* length : {"", "Content-Length: 0\r\n"}) {
    ASSERT_TRUE(client.send(fmt::format("POST /a HTTP/1.1\r\nHost: t\r\n{}\r\n", length)));
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, "POST /a? ");
  }
}

TEST(HttpLimits, what_is_thrown_outside_the_handler_ends_that_connection_alone) {
  const auto throws = [](int, std::string_view) -> HttpAnswer { throw std::runtime_error("of the answer"); };
  const auto server = start_test_server({.error_answer = throws}, echo);
  HttpTestClient other(server->port());
  ASSERT_TRUE(other.get("/before"));
  ASSERT_TRUE(other.read_answer());
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.send("nonsense\r\n\r\n"));
  EXPECT_TRUE(client.sees_end());
  EXPECT_EQ(server->counters().n_failures, 1u);
  ASSERT_TRUE(other.get("/behind"));
  EXPECT_TRUE(other.read_answer());
  expect_service(*server);
}

TEST(HttpLimits, a_request_that_does_not_come_to_its_end_gets408) {
  const auto server = start_test_server(
      {.header_timeout = milliseconds(50), .body_timeout = milliseconds(50), .error_answer = json_error}, echo);
  expect_refusal(*server, "G", 408);
  expect_refusal(*server, "GET / HTTP/1.1\r\nHost: t\r\n", 408);
  expect_refusal(*server, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nhello", 408);
}

TEST(HttpLimits, byte_by_byte_is_no_way_around_the_time_for_headers) {
  const auto server = start_test_server({.header_timeout = milliseconds(50), .error_answer = json_error}, echo);
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: t\r\n"));
  // As long as the server takes more: it would take this for ever.
  EXPECT_TRUE(becomes_true([&] {
    client.send("X: y\r\n");
    return server->counters().n_refused == 1;
  }));
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 408);
}

TEST(HttpLimits, an_idle_connection_is_closed_without_a_word) {
  const auto server = start_test_server({.idle_timeout = milliseconds(30)}, echo);
  HttpTestClient fresh(server->port());
  HttpTestClient used(server->port());
  ASSERT_TRUE(used.get("/"));
  ASSERT_TRUE(used.read_answer());
  EXPECT_FALSE(fresh.read_answer());
  EXPECT_FALSE(used.read_answer());
  EXPECT_TRUE(becomes_true([&] { return server->counters().n_connections == 0; }));
  EXPECT_EQ(server->counters().n_refused, 0u);
}

TEST(HttpLimits, a_request_under_way_has_no_time_limit) {
  TestDesk desk;
  const milliseconds brief(20);
  const auto server = start_test_server(
      {.idle_timeout = brief, .header_timeout = brief, .body_timeout = brief, .write_timeout = brief}, desk.handler());
  HttpTestClient waiting(server->port());
  ASSERT_TRUE(waiting.post("/", "x"));
  const TestCase given = desk.take();
  ASSERT_TRUE(given.responder);
  // A connection that came later has had its time, and so has this one by now.
  HttpTestClient idle(server->port());
  EXPECT_TRUE(idle.sees_end());
  EXPECT_FALSE(given.responder->is_closed());
  given.responder->send({.body = "late"});
  const auto answer = waiting.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "late");
}

TEST(HttpLimits, too_many_connections_are_told_to_come_back) {
  const auto server = start_test_server({.max_connections = 2, .error_answer = json_error}, echo);
  std::vector<HttpTestClient> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back(server->port());
    ASSERT_TRUE(clients.back().get("/"));
    ASSERT_TRUE(clients.back().read_answer());
  }
  {
    HttpTestClient third(server->port());
    third.get("/");
    const auto refusal = third.read_answer();
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->status, 503);
    EXPECT_EQ(refusal->headers.at("retry-after"), "1");
    EXPECT_TRUE(third.sees_end());
  }
  EXPECT_EQ(server->counters().n_turned_away, 1u);
  clients.clear();
  EXPECT_TRUE(becomes_true([&] { return server->counters().n_connections == 0; }));
  expect_service(*server);
}

TEST(HttpLimits, those_who_are_told_to_come_back_take_nobodys_place) {
  const auto server = start_test_server({.max_connections = 1, .linger_timeout = milliseconds(60'000)}, echo);
  HttpTestClient second = [&] {
    HttpTestClient first(server->port());
    EXPECT_TRUE(first.get("/"));
    EXPECT_TRUE(first.read_answer());
    HttpTestClient refused(server->port());
    const auto refusal = refused.read_answer();
    EXPECT_TRUE(refusal && refusal->status == 503);
    return refused;  // still open on its side
  }();
  EXPECT_TRUE(becomes_true([&] { return server->counters().n_connections == 1; }));
  expect_service(*server);
}

TEST(HttpLimits, more_than_that_are_closed_at_once) {
  const auto server = start_test_server({.max_connections = 1, .linger_timeout = milliseconds(60'000)}, echo);
  std::vector<HttpTestClient> clients;
  for (int i = 0; i < 200; ++i) {
    clients.emplace_back(server->port());
    ASSERT_TRUE(clients.back().connected());
  }
  EXPECT_TRUE(becomes_true([&] { return server->counters().n_accepted == 200; }));
  EXPECT_EQ(server->counters().n_turned_away, 199u);
  EXPECT_LE(server->counters().n_connections, 65u);
}

TEST(HttpLimits, what_is_not_http_gets400) {
  const auto server = start_test_server({.error_answer = json_error}, echo);
  for (const std::string bytes : {
           "hello\r\n\r\n",
           "GET / HTTP/3.0\r\nHost: t\r\n\r\n",
           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
           "\x16\x03\x01\x02\x01\x01\xfc\x03\x03 a greeting of TLS",
           "GET / HTTP/1.1\r\n\r\n",                           // no Host
           "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",     // two
           "GET / HTTP/1.1\r\nHost: t\r\nbad header\r\n\r\n",  // no colon
           "GET / HTTP/1.1\r\nHost: t\r\nX: \x01\r\n\r\n",     // a control character
           "GET /%zz HTTP/1.1\r\nHost: t\r\n\r\n",             // a bad escape
           "GET relative HTTP/1.1\r\nHost: t\r\n\r\n",         // no path
           "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: x\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999999999999\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
           // Read by one server this way and by another that way, these smuggle a request past the first.
           "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
           "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello world\r\n0\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx\r\n0\r\n\r\n",
       }) {
    expect_refusal(*server, bytes, 400);
  }
  expect_service(*server);
  EXPECT_EQ(server->counters().n_requests, 1u);
}

TEST(HttpLimits, a_chunk_header_without_end_is_not_collected) {
  const auto server = start_test_server({.error_answer = json_error}, echo);
  expect_refusal(*server,
                 "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5;x=" + std::string(1'000'000, 'x'),
                 400);
}

TEST(HttpLimits, a_thousand_damaged_requests_harm_nobody) {
  const auto server = start_test_server({.n_io_threads = 2}, echo);
  const std::vector<std::string> good = {
      "GET /v1/models?x=1 HTTP/1.1\r\nHost: t\r\nAccept: */*\r\n\r\n",
      "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 14\r\nExpect: "
      "100-continue\r\n\r\n{\"prompt\":\"a\"}",
      "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nA: "
      "b\r\n\r\n",
      "HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n",
  };
  std::mt19937 random(20240817);
  const auto below = [&](std::size_t n) { return random() % n; };
  for (int i = 0; i < 1000; ++i) {
    std::string bytes = good[below(good.size())];
    for (std::size_t n = 1 + below(4); n > 0 && !bytes.empty(); --n) {
      const std::size_t at = below(bytes.size());
      switch (below(6)) {
        case 0: bytes[at] = static_cast<char>(below(256)); break;
        case 1: bytes.erase(at, 1 + below(8)); break;
        case 2: bytes.insert(at, 1 + below(3), static_cast<char>(below(256))); break;
        case 3: bytes.insert(at, bytes.substr(below(bytes.size()), below(30))); break;
        case 4: bytes.resize(at); break;
        default: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      }
    }
    HttpTestClient client(server->port());
    ASSERT_TRUE(client.connected());
    client.send(bytes);
    if (i % 10 == 0) {
      client.reset();
    } else {
      client.close_sending_half();
      ASSERT_TRUE(client.sees_end()) << "request " << i << " hangs: " << bytes;
    }
    if (i % 50 == 0) expect_service(*server);
  }
  expect_service(*server);
  EXPECT_TRUE(becomes_true([&] { return server->counters().n_connections == 0; }));
  EXPECT_EQ(server->counters().body_bytes, 0u);
  EXPECT_GT(server->counters().n_refused, 100u);
}

// Takes away all file descriptors but those in use, while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(STDIN_FILENO);
    ::close(next);
    const rlimit less{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &less);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(HttpLimits, without_file_descriptors_it_waits_for_some_and_does_not_spin) {
  const auto server = start_test_server({}, echo);
  const Stopwatch watch;
  HttpTestClient before(server->port());
  ASSERT_TRUE(before.get("/"));
  ASSERT_TRUE(before.read_answer());
  const int spare = ::dup(STDIN_FILENO);  // the number that the client below gets
  std::optional<HttpTestClient> client;
  {
    const NoDescriptors none;
    ::close(spare);
    client.emplace(server->port());
    ASSERT_TRUE(client->connected());
    ASSERT_TRUE(client->get("/"));
    EXPECT_TRUE(becomes_true([&] { return server->counters().n_accept_failures >= 3; }));
    const std::uint64_t n_failures = server->counters().n_accept_failures;
    EXPECT_LE(static_cast<double>(n_failures), watch.elapsed_ms() / 50 + 2);
    // Those who are in are served.
    ASSERT_TRUE(before.get("/still"));
    const auto answer = before.read_answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, "GET /still? ");
  }
  const auto answer = client->read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
}

}  // namespace
}  // namespace ebb
