// The text of JSON strings, byte by byte: written and read.
//
// Bytes above 0x7F pass unchanged both ways; whether they are UTF-8 is the caller's affair.
//
// Thread rule: functions without state; a JsonStringReader belongs to one thread at a time.
#pragma once

#include <string>
#include <string_view>

namespace ebb {

// Adds the byte as it stands inside a JSON string.
void add_json_char(std::string& out, char c);

// The text as a JSON string, quotes included.
[[nodiscard]] std::string to_json_string(std::string_view text);

// Adds a Unicode scalar value in UTF-8.
void add_utf8(char32_t code, std::string& out);

// Reads the inside of a JSON string. An escape that JSON does not know is kept as it was written, a surrogate without
// its partner becomes U+FFFD.
class JsonStringReader {
 public:
  // True when the byte is the closing quote. What is certain by now is added to `out`.
  [[nodiscard]] bool take(char c, std::string& out);

 private:
  enum class State { kPlain, kEscape, kHex };

  void take_escape(char c, std::string& out);
  void take_hex(char c, std::string& out);
  void add_unit(unsigned unit, std::string& out);
  void drop_high(std::string& out);

  State state_ = State::kPlain;
  std::string hex_;    // digits of a \u escape so far
  unsigned high_ = 0;  // a high surrogate that waits for its low one
};

}  // namespace ebb
