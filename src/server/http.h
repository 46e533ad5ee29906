// HttpServer: HTTP/1.1 (and 1.0) over TCP or a Unix socket, for many clients that mostly wait.
//
// It reads requests, hands each to the handler, and writes what the handler's side puts into the Responder, at once or
// hours later. It does not know routes, JSON, keys, TLS or the engine. Boost is behind it, in http.cc alone.
//
// Laws. No client can make it wait, spin, or hold more than the limits below: a request is at most max_header_bytes +
// max_body_bytes, all bodies together at most max_bodies_bytes, the unread part of a stream about max_queued_bytes, and
// every state of a connection but "the handler is thinking" has a time limit. One read is always pending, so that a
// client that leaves is noticed while it waits; what it sends early is kept for the next request (up to 64 KiB; then
// reading, and with it the noticing, rests until the answer is complete). A client that closes its sending half before it
// has its answer is taken to have left.
//
// What HTTP itself refuses (400, 408, 413, 429, 431, 503) gets its body from error_answer, and the connection ends with it. Whose
// body may be read at all is the owner's to say (check_body), so that strangers cannot fill max_bodies_bytes, and how much of
// that one client may have (share_body).
//
// Thread rule: start, stop and the destructor on the owner's thread, never on an io thread; port, address and counters on
// any. The handler and on_close callbacks run on io threads and must not block: they post to the engine.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "server/http_message.h"

namespace ebb {

using HttpHandler = std::function<void(HttpRequest request, std::shared_ptr<Responder> responder)>;
// What a request gets instead of being read to its end, by its head alone; nothing: it may go on.
using HttpBodyCheck = std::function<std::optional<HttpAnswer>(const HttpRequest& head)>;
// Whose a request is, by its head, and how many bytes that owner's bodies may have together. Beyond it, 429.
struct HttpBodyShare {
  std::string owner;
  std::size_t most_bytes = std::numeric_limits<std::size_t>::max();
};
using HttpBodySharing = std::function<HttpBodyShare(const HttpRequest& head)>;
using HttpErrorAnswer = std::function<HttpAnswer(int status, std::string_view message)>;

// The message as plain text.
[[nodiscard]] HttpAnswer plain_error_answer(int status, std::string_view message);

struct HttpOptions {
  std::string host = "127.0.0.1";  // a name, an address, or the path of a Unix socket: what ends in ".sock"
  std::uint16_t port = 8080;       // 0: any free one
  int n_io_threads = 1;

  std::size_t max_header_bytes = std::size_t{64} << 10;
  std::size_t max_body_bytes = std::size_t{64} << 20;
  // All bodies that are being read or answered, those that still come as long as they were announced. Beyond it, 503.
  std::size_t max_bodies_bytes = std::size_t{1} << 30;
  std::size_t max_queued_bytes = std::size_t{4} << 20;
  // Beyond it, 503 with Retry-After, without reading the request.
  std::size_t max_connections = 4096;

  std::chrono::milliseconds idle_timeout{120'000};   // between requests
  std::chrono::milliseconds header_timeout{30'000};  // from the first byte to the last of the headers
  std::chrono::milliseconds body_timeout{30'000};    // plus one second for every 16 KiB that have come
  std::chrono::milliseconds write_timeout{60'000};   // without the client taking a byte
  std::chrono::milliseconds linger_timeout{2'000};   // for the client to close, once we have closed our half

  HttpErrorAnswer error_answer = plain_error_answer;
  // Asked of each request that has a body, before any of it is waited for or counted; whom it refuses, the connection ends.
  // None: all bodies are read. On an io thread; it must not block.
  HttpBodyCheck check_body = {};
  // Asked behind it. None: all are one owner's, who may have all.
  HttpBodySharing share_body = {};
};

struct HttpCounters {
  std::uint64_t n_connections = 0;  // now open
  std::uint64_t n_accepted = 0;
  std::uint64_t n_turned_away = 0;      // for max_connections
  std::uint64_t n_accept_failures = 0;  // out of file descriptors or memory; tried again
  std::uint64_t n_requests = 0;         // handed to the handler
  std::uint64_t n_refused = 0;          // by HTTP itself, or by check_body
  std::uint64_t n_left = 0;             // clients that left before their answer was complete
  std::uint64_t n_too_slow = 0;         // clients dropped for not reading
  std::uint64_t n_failures = 0;         // what was thrown, by the handler or by the work on one connection
  std::uint64_t body_bytes = 0;         // held now
};

class HttpServer {
 public:
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> start(HttpOptions options, HttpHandler handler);
  ~HttpServer();  // stop(0)
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // 0 for a Unix socket.
  [[nodiscard]] std::uint16_t port() const;
  // For people: "http://127.0.0.1:8080" or "unix:/run/ebb.sock".
  [[nodiscard]] const std::string& address() const;
  [[nodiscard]] HttpCounters counters() const;

  // Accepts no more, closes idle connections, lets answers under way end for `grace`, then closes them too (on_close) and
  // ends the io threads. Responders may outlive the server. A second call does nothing.
  void stop(std::chrono::milliseconds grace);

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ebb
