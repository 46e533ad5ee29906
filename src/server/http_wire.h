// The bytes of HTTP/1.x that we write ourselves, and the parts of a request's target.
//
// Knows no sockets and no parser of requests (that is Beast's work, server/http_connection.h). Pure functions.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "server/http_message.h"

namespace ebb {

// How the client knows where the body ends (RFC 9112 §6.3).
enum class Framing : std::uint8_t { kLength, kChunked, kUntilClose };

struct HttpHead {
  int status = 200;
  const HttpHeaders& headers;
  Framing framing = Framing::kLength;
  std::size_t body_bytes = 0;  // of kLength
  bool http_1_1 = true;        // the client's version
  bool keep_alive = true;
  std::time_t date = 0;
};

[[nodiscard]] std::string_view status_phrase(int status);
// Status line and headers, with the empty line.
[[nodiscard]] std::string format_head(const HttpHead& head);
// "Sun, 06 Nov 1994 08:49:37 GMT"
[[nodiscard]] std::string format_http_date(std::time_t time);
// A chunk of a chunked body. Empty text adds nothing: an empty chunk would end the body.
void append_chunk(std::string& out, std::string_view text);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

enum class Plus : std::uint8_t { kIsPlus, kIsSpace };
// Nothing for a '%' that two hexadecimal digits do not follow.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text, Plus plus);

struct HttpTarget {
  std::string path;  // decoded
  std::string query;
};
// Takes "/path?query", "http://host/path?query" and "*"; nothing for others and for a bad escape in the path.
[[nodiscard]] std::optional<HttpTarget> parse_target(std::string_view target);

[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace ebb
