#include "json/json_string.h"

#include <cstdlib>
#include <utility>

namespace ebb {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_hex(char c) { return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f') || ('A' <= c && c <= 'F'); }

}  // namespace

void add_utf8(char32_t code, std::string& out) {
  const auto add = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | (code >> 6));
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | (code >> 12));
    add(0x80 | ((code >> 6) & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | (code >> 18));
    add(0x80 | ((code >> 12) & 0x3F));
    add(0x80 | ((code >> 6) & 0x3F));
    add(0x80 | (code & 0x3F));
  }
}

void add_json_char(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20) {
    out += c;
  } else {
    out += "\\u00";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
}

std::string to_json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) add_json_char(out, c);
  return out += '"';
}

void JsonStringReader::drop_high(std::string& out) {
  if (std::exchange(high_, 0) != 0) out += kReplacement;
}

void JsonStringReader::add_unit(unsigned unit, std::string& out) {
  const bool is_low = 0xDC00 <= unit && unit < 0xE000;
  if (is_low && high_ != 0) {
    add_utf8(0x10000 + ((std::exchange(high_, 0) - 0xD800) << 10) + (unit - 0xDC00), out);
    return;
  }
  drop_high(out);
  if (0xD800 <= unit && unit < 0xDC00) {
    high_ = unit;
  } else if (is_low) {
    out += kReplacement;
  } else {
    add_utf8(unit, out);
  }
}

void JsonStringReader::take_hex(char c, std::string& out) {
  if (!is_hex(c)) {
    drop_high(out);
    out += "\\u" + std::exchange(hex_, {});
    state_ = State::kPlain;
    return;
  }
  hex_ += c;
  if (hex_.size() < 4) return;
  add_unit(static_cast<unsigned>(std::strtoul(std::exchange(hex_, {}).c_str(), nullptr, 16)), out);
  state_ = State::kPlain;
}

void JsonStringReader::take_escape(char c, std::string& out) {
  state_ = State::kPlain;
  if (c == 'u') {
    state_ = State::kHex;
    return;
  }
  drop_high(out);
  switch (c) {
    case 'b': out += '\b'; return;
    case 'f': out += '\f'; return;
    case 'n': out += '\n'; return;
    case 'r': out += '\r'; return;
    case 't': out += '\t'; return;
    case '"':
    case '\\':
    case '/': out += c; return;
    default: out += '\\'; out += c;
  }
}

bool JsonStringReader::take(char c, std::string& out) {
  if (state_ == State::kEscape) {
    take_escape(c, out);
    return false;
  }
  if (state_ == State::kHex) {
    take_hex(c, out);
    if (state_ == State::kHex || is_hex(c)) return false;
    // The byte broke the escape off and is read as what it is.
  }
  if (c == '\\') {
    state_ = State::kEscape;
    return false;
  }
  drop_high(out);
  if (c == '"') return true;
  out += c;
  return false;
}

}  // namespace ebb
