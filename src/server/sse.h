// Server-sent events (WHATWG HTML §9.2): how one event lies in a text/event-stream. Knows nothing of what it carries.
#pragma once

#include <string>
#include <string_view>

#include "server/http_message.h"

namespace ebb {

// A comment, which clients skip: it keeps proxies and clients from taking a long prefill for a dead connection.
inline constexpr std::string_view kSsePing = ":\n\n";
// OpenAI's last event.
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

// X-Accel-Buffering tells nginx to pass events on at once.
[[nodiscard]] inline HttpHeaders sse_headers() {
  return {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
}

// Adds an event; without a name, a client takes it for "message". Each line of the data gets its own field, which the
// client joins again; a name is one line.
inline void append_sse(std::string& out, std::string_view data, std::string_view event = {}) {
  if (!event.empty()) {
    out += "event: ";
    out += event.substr(0, event.find_first_of("\r\n"));
    out += '\n';
  }
  while (true) {
    const std::size_t end = data.find_first_of("\r\n");
    out += "data: ";
    out += data.substr(0, end);
    out += '\n';
    if (end == std::string_view::npos) break;
    data.remove_prefix(end + (data.substr(end, 2) == "\r\n" ? 2 : 1));
  }
  out += '\n';
}

}  // namespace ebb
