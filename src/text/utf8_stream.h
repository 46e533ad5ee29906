// Utf8Stream: bytes in as they come, whole UTF-8 characters out.
//
// Tokens end anywhere, also inside a character. What goes out is always valid UTF-8: an unfinished character is held
// back until its last byte comes (at most 3 bytes), and bytes that cannot become a character are replaced by U+FFFD,
// one for each maximal run that began like a character and broke off (Unicode 15, §3.9, as browsers do). The output
// depends on the bytes only, not on how they were cut into pieces.
//
// Thread rule: one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace ebb {

class Utf8Stream {
 public:
  // Returns what is certain now.
  [[nodiscard]] std::string push(std::string_view bytes);
  // The end of the stream: an unfinished character becomes U+FFFD. The stream is as new afterwards.
  [[nodiscard]] std::string flush();
  // Bytes held back, 0..3.
  [[nodiscard]] std::size_t n_held() const { return n_held_; }

 private:
  void push_byte(unsigned char byte, std::string& out);

  std::array<char, 4> held_{};
  std::size_t n_held_ = 0;
};

// True if every character of the text is well-formed UTF-8 (no surrogates, nothing overlong, nothing past U+10FFFF).
[[nodiscard]] bool is_valid_utf8(std::string_view text);

// The whole text at once: what a Utf8Stream makes of it.
[[nodiscard]] std::string to_valid_utf8(std::string_view bytes);

}  // namespace ebb
