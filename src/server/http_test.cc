#include "server/http.h"

#include <stdexcept>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/http_test_client.h"
#include "server/http_test_desk.h"

namespace ebb {
namespace {

TEST(Http, answers_requests_on_one_connection_that_stays_open) {
  const auto server = start_test_server({}, echo);
  HttpTestClient client(server->port());
  for (const std::string path : {"/a", "/b", "/c"}) {
    ASSERT_TRUE(client.post(path, "text of " + path));
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer && answer->whole);
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->version, "HTTP/1.1");
    EXPECT_EQ(answer->body, "POST " + path + "? text of " + path);
    EXPECT_EQ(answer->headers.at("content-type"), "text/plain");
    EXPECT_TRUE(answer->headers.contains("date"));
    EXPECT_FALSE(answer->headers.contains("connection"));
  }
  EXPECT_EQ(server->counters().n_accepted, 1u);
  EXPECT_EQ(server->counters().n_requests, 3u);
  EXPECT_TRUE(becomes_true([&] { return server->counters().body_bytes == 0; }));
}

TEST(Http, hands_over_what_the_request_says) {
  TestDesk desk;
  const auto server = start_test_server({}, desk.handler());
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.send(
      "PUT http://ebb/v1/a%20b?x=1+2&y=%26&z HTTP/1.1\r\nHost: ebb\r\nX-API-Key: k\r\nContent-Length: 2\r\n\r\nhi"));
  const TestCase given = desk.take();
  ASSERT_TRUE(given.responder);
  EXPECT_EQ(given.request.method, "PUT");
  EXPECT_EQ(given.request.path, "/v1/a b");
  EXPECT_EQ(given.request.query, "x=1+2&y=%26&z");
  EXPECT_EQ(given.request.find_query("x"), "1 2");
  EXPECT_EQ(given.request.find_query("y"), "&");
  EXPECT_EQ(given.request.find_query("z"), "");
  EXPECT_EQ(given.request.find_query("w"), std::nullopt);
  ASSERT_NE(given.request.find_header("x-api-key"), nullptr);
  EXPECT_EQ(*given.request.find_header("x-api-key"), "k");
  EXPECT_EQ(given.request.find_header("x-api"), nullptr);
  EXPECT_EQ(given.request.body, "hi");
  EXPECT_EQ(given.request.remote_address.find("127.0.0.1:"), 0u);
  EXPECT_EQ(server->counters().body_bytes, 2u);
  given.responder->send({.status = 204});
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 204);
  EXPECT_FALSE(answer->headers.contains("content-length"));
}

TEST(Http, answers_pipelined_requests_in_order) {
  TestDesk desk;
  const auto server = start_test_server({}, desk.handler());
  HttpTestClient client(server->port());
  constexpr int kRequests = 20;
  std::string all;
  for (int i = 0; i < kRequests; ++i) {
    const std::string body(static_cast<std::size_t>(i) * 10'000, 'x');  // past what is kept, and past one read
    all += fmt::format("POST /{} HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n\r\n{}", i, body.size(), body);
  }
  std::thread sender([&] { EXPECT_TRUE(client.send(all)); });
  for (int i = 0; i < kRequests; ++i) {
    const TestCase given = desk.take();
    ASSERT_TRUE(given.responder);
    EXPECT_EQ(given.request.path, fmt::format("/{}", i));
    EXPECT_EQ(given.request.body.size(), static_cast<std::size_t>(i) * 10'000);
    EXPECT_EQ(desk.n_waiting(), 0u);  // the next waits for this one's answer
    given.responder->send({.body = given.request.path});
  }
  sender.join();
  for (int i = 0; i < kRequests; ++i) {
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, fmt::format("/{}", i));
  }
}

TEST(Http, reads_a_body_that_comes_byte_by_byte) {
  const auto server = start_test_server({}, echo);
  for (const std::string request : {"POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 11\r\n\r\nhello world",
                                    "POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
                                    "5;note=x\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: y\r\n\r\n"}) {
    HttpTestClient client(server->port());
    for (const char byte : request) ASSERT_TRUE(client.send(std::string_view(&byte, 1)));
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, "POST /a? hello world");
  }
}

TEST(Http, takes_no_headers_from_behind_the_body) {
  TestDesk desk;
  const auto server = start_test_server({}, desk.handler());
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Api-Key: k\r\n\r\n"));
  const TestCase given = desk.take();
  ASSERT_TRUE(given.responder);
  EXPECT_EQ(given.request.find_header("x-api-key"), nullptr);
  given.responder->send({});
}

TEST(Http, carries_a_large_body_both_ways) {
  const auto server = start_test_server({}, [](HttpRequest request, const std::shared_ptr<Responder>& responder) {
    responder->send({.body = std::move(request.body)});
  });
  HttpTestClient client(server->port());
  std::string body(std::size_t{8} << 20, 'a');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>('a' + i * 7 % 26);
  ASSERT_TRUE(client.post("/", body));
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer && answer->whole);
  EXPECT_TRUE(answer->body == body);
}

TEST(Http, gives_head_the_headers_without_the_body) {
  const auto server = start_test_server({}, echo);
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.send("HEAD /a HTTP/1.1\r\nHost: t\r\n\r\n"));
  const auto answer = client.read_answer(true);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->headers.at("content-length"), "9");  // "HEAD /a? "
  ASSERT_TRUE(client.send("OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n"));
  const auto next = client.read_answer();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->body, "OPTIONS *? ");
}

TEST(Http, closes_for_old_clients_and_for_those_that_ask) {
  const auto server = start_test_server({}, echo);
  for (const std::string request :
       {"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"}) {
    HttpTestClient client(server->port());
    ASSERT_TRUE(client.send(request));
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer && answer->whole);
    EXPECT_EQ(answer->headers.at("connection"), "close");
    EXPECT_EQ(answer->body, "GET /? ");
    EXPECT_TRUE(client.sees_end());
  }
}

TEST(Http, keeps_an_old_client_that_asks_for_it) {
  const auto server = start_test_server({}, echo);
  HttpTestClient client(server->port());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->headers.at("connection"), "keep-alive");
  }
}

TEST(Http, invites_the_body_of_a_client_that_waits_for_it) {
  const auto server = start_test_server({}, echo);
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.send("POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"));
  const auto invitation = client.read_answer();
  ASSERT_TRUE(invitation);
  EXPECT_EQ(invitation->status, 100);
  ASSERT_TRUE(client.send("hi"));
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "POST /a? hi");
}

TEST(Http, answers_a_client_that_closes_its_half_after_its_last_request) {
  const auto server = start_test_server({}, echo);
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.send("GET /a HTTP/1.1\r\nHost: t\r\n\r\nGET /b HTTP/1.1\r\nHost: t\r\n\r\n"));
  client.close_sending_half();
  for (const std::string body : {"GET /a? ", "GET /b? "}) {
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, body);
  }
  EXPECT_TRUE(client.sees_end());
}

TEST(Http, answers_for_a_handler_that_forgets_or_throws) {
  const auto server = start_test_server({}, [](const HttpRequest& request, const std::shared_ptr<Responder>&) {
    if (request.path == "/throw") throw std::runtime_error("of the handler");
  });
  HttpTestClient client(server->port());
  for (const std::string path : {"/forget", "/throw"}) {
    ASSERT_TRUE(client.get(path));
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 500);
    EXPECT_EQ(answer->body.find("of the handler"), std::string::npos);
  }
  EXPECT_EQ(server->counters().n_failures, 1u);
}

TEST(Http, lets_no_header_value_begin_a_header) {
  const auto server = start_test_server({}, [](const HttpRequest&, const std::shared_ptr<Responder>& responder) {
    responder->send({.headers = {{"X-Origin", "a\r\nSet-Cookie: b"}}});
  });
  HttpTestClient client(server->port());
  ASSERT_TRUE(client.get("/"));
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->headers.contains("set-cookie"));
  EXPECT_EQ(answer->headers.at("x-origin"), "a  Set-Cookie: b");
}

TEST(Http, serves_many_clients_on_several_threads) {
  constexpr int kClients = 8;
  constexpr int kRequests = 50;
  const auto server = start_test_server({.n_io_threads = 3}, echo);
  std::vector<std::thread> threads;
  for (int c = 0; c < kClients; ++c) {
    threads.emplace_back([&server, c] {
      HttpTestClient client(server->port());
      for (int i = 0; i < kRequests; ++i) {
        const std::string path = fmt::format("/{}/{}", c, i);
        ASSERT_TRUE(client.get(path));
        const auto answer = client.read_answer();
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->body, "GET " + path + "? ");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(server->counters().n_requests, static_cast<std::uint64_t>(kClients * kRequests));
}

TEST(Http, says_what_to_do_about_a_port_that_is_in_use) {
  const auto server = start_test_server({}, echo);
  const auto second = HttpServer::start({.port = server->port()}, echo);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kIo);
  EXPECT_NE(second.status().message().find("in use"), std::string::npos);
  EXPECT_NE(second.status().message().find("--port"), std::string::npos);
  EXPECT_EQ(second.status().message().find('\n'), std::string::npos);
}

TEST(Http, refuses_to_start_with_nonsense) {
  EXPECT_EQ(HttpServer::start({.n_io_threads = 0}, echo).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(HttpServer::start({.max_header_bytes = 0}, echo).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(HttpServer::start({.host = "no such host!", .port = 0}, echo).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ebb
