#include "server/http_wire.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

namespace ebb {

namespace {

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

// A header's value may repeat what a client sent; a line break in it would begin a header of the client's making.
void append_on_one_line(std::string& out, std::string_view text) {
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    out += (byte < 0x20 && letter != '\t') || byte == 0x7F ? ' ' : letter;
  }
}

bool has_no_body(int status) { return status < 200 || status == 204 || status == 304; }

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view status_phrase(int status) {
  switch (status) {
    case 100: return "Continue";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    default: return status < 400 ? "OK" : "Error";
  }
}

std::string format_http_date(std::time_t time) {
  static constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[static_cast<std::size_t>(utc.tm_wday)], utc.tm_mday,
                     kMonths[static_cast<std::size_t>(utc.tm_mon)], utc.tm_year + 1900, utc.tm_hour, utc.tm_min,
                     utc.tm_sec);
}

std::string format_head(const HttpHead& head) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", head.status, status_phrase(head.status),
                                format_http_date(head.date));
  for (const HttpHeader& header : head.headers) {
    append_on_one_line(out, header.name);
    out += ": ";
    append_on_one_line(out, header.value);
    out += "\r\n";
  }
  if (!head.keep_alive) {
    out += "Connection: close\r\n";
  } else if (!head.http_1_1) {
    out += "Connection: keep-alive\r\n";
  }
  if (head.framing == Framing::kChunked) {
    out += "Transfer-Encoding: chunked\r\n";
  } else if (head.framing == Framing::kLength && !has_no_body(head.status)) {
    fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n", head.body_bytes);
  }
  return out += "\r\n";
}

void append_chunk(std::string& out, std::string_view text) {
  if (text.empty()) return;
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", text.size());
  out += text;
  out += "\r\n";
}

std::optional<std::string> percent_decode(std::string_view text, Plus plus) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' && plus == Plus::kIsSpace ? ' ' : text[i];
    }
  }
  return out;
}

std::optional<HttpTarget> parse_target(std::string_view target) {
  if (target == "*") return HttpTarget{.path = "*", .query = ""};
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equal_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    target.remove_prefix(std::min(target.find_first_of("/?"), target.size()));
    if (target.empty() || target[0] == '?') {
      return HttpTarget{.path = "/", .query = std::string(target.empty() ? target : target.substr(1))};
    }
    break;
  }
  if (target.empty() || target[0] != '/') return std::nullopt;
  target = target.substr(0, target.find('#'));
  const std::size_t mark = target.find('?');
  std::optional<std::string> path = percent_decode(target.substr(0, mark), Plus::kIsPlus);
  if (!path) return std::nullopt;
  return HttpTarget{.path = *std::move(path),
                    .query = mark == std::string_view::npos ? "" : std::string(target.substr(mark + 1))};
}

const std::string* HttpRequest::find_header(std::string_view name) const {
  for (const HttpHeader& header : headers) {
    if (equal_ignoring_case(header.name, name)) return &header.value;
  }
  return nullptr;
}

std::optional<std::string> HttpRequest::find_query(std::string_view name) const {
  std::string_view rest = query;
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    const std::size_t equals = pair.find('=');
    if (percent_decode(pair.substr(0, equals), Plus::kIsSpace) != name) continue;
    if (equals == std::string_view::npos) return "";
    return percent_decode(pair.substr(equals + 1), Plus::kIsSpace);
  }
  return std::nullopt;
}

}  // namespace ebb
