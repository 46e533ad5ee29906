// The words of HTTP that handlers speak: a request, an answer, the head of a stream, and whom to give them to.
//
// They know no socket, no thread of the server and no route. Sizes and time limits are the server's (server/http.h).
// Thread rule: requests and answers are values; a Responder may be used from any thread, by one or several at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ebb {

struct HttpHeader {
  std::string name;
  std::string value;
};
using HttpHeaders = std::vector<HttpHeader>;

struct HttpRequest {
  std::string method;   // as sent, such as "GET"
  std::string path;     // percent-decoded, without the query: "/v1/models"
  std::string query;    // as sent, without the '?'
  HttpHeaders headers;  // in the order sent
  std::string body;
  std::string remote_address;  // "127.0.0.1:51234", "[::1]:51234", or "unix"

  // The first header of that name, in any case.
  [[nodiscard]] const std::string* find_header(std::string_view name) const;
  // The first value of that name in the query, decoded; "" for a name without '='.
  [[nodiscard]] std::optional<std::string> find_query(std::string_view name) const;
};

struct HttpAnswer {
  int status = 200;
  // Date, Connection, Content-Length and Transfer-Encoding are the server's; line breaks in a value become spaces.
  HttpHeaders headers = {};
  std::string body = {};
};

struct HttpStreamHead {
  int status = 200;
  HttpHeaders headers = {};
  // Written whenever the stream was silent for ping_after, by the server's own clock, however busy its writer is.
  std::string ping = {};
  std::chrono::milliseconds ping_after{0};  // 0: never
};

// Where the answer to one request goes: one send(), or one begin_stream(), writes and a finish().
//
// What is put in after the client has left is thrown away. A Responder whose last owner lets go of it without an answer
// gives the client a 500; in mid-stream, it aborts.
class Responder {
 public:
  virtual ~Responder() = default;

  virtual void send(HttpAnswer answer) = 0;

  virtual void begin_stream(HttpStreamHead head) = 0;
  // Never waits. Returns the bytes that are queued and that the client has not taken yet: a caller that sees this grow
  // should hold text back and merge it. A client whose queue is past max_queued_bytes at a write is dropped.
  virtual std::size_t write(std::string_view text) = 0;
  virtual void finish() = 0;
  // Ends the connection so that the client can tell: no end of stream is sent, and what is queued is thrown away. Also
  // without a begun stream.
  virtual void abort() = 0;

  // Whether nothing more can be sent: the client left, or the answer is complete.
  [[nodiscard]] virtual bool is_closed() const = 0;
  // Has `callback` called once, on an io thread, should the client leave, be dropped, or lose its server before the
  // answer is complete. False, and nothing is kept, when that has happened already. One callback per request; it must not
  // block, and should not own the Responder.
  [[nodiscard]] virtual bool on_close(std::function<void()> callback) = 0;
};

}  // namespace ebb
