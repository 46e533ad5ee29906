// Code points out of UTF-8 bytes that come in pieces, where a piece may end inside a character.
//
// Unlike Utf8Stream it mends nothing: bytes that cannot become a character are refused. Thread rule: functions.
#pragma once

#include <string>
#include <string_view>

namespace ebb {

// A character whose last bytes are missing; n_missing 0: none.
struct PartialCodePoint {
  char32_t bits = 0;      // of the bytes that are here
  char32_t shortest = 0;  // the least that its number of bytes may say: no overlong forms
  unsigned n_missing = 0;

  // What it may become: `least` to `most`.
  [[nodiscard]] char32_t least() const;
  [[nodiscard]] char32_t most() const;
};

// Adds the whole characters of `partial` and `bytes` to `out`, and leaves in `partial` what follows them. False for bytes
// that no well-formed text has there, and for NUL.
[[nodiscard]] bool decode_code_points(std::string_view bytes, PartialCodePoint& partial, std::u32string& out);

}  // namespace ebb
