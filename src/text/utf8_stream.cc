#include "text/utf8_stream.h"

namespace ebb {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the character that begins with this byte; 0 if none does.
std::size_t character_length(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;  // a continuation, or the beginning of an overlong form
  if (first < 0xE0) return 2;
  if (first < 0xF0) return 3;
  if (first < 0xF5) return 4;
  return 0;  // past U+10FFFF
}

// Unicode 15, table 3-7: only the second byte has a range that depends on the first.
bool may_follow(unsigned char first, std::size_t index, unsigned char byte) {
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (index == 1) {
    if (first == 0xE0) low = 0xA0;   // overlong below
    if (first == 0xED) high = 0x9F;  // surrogates above
    if (first == 0xF0) low = 0x90;   // overlong below
    if (first == 0xF4) high = 0x8F;  // past U+10FFFF above
  }
  return low <= byte && byte <= high;
}

}  // namespace

void Utf8Stream::push_byte(unsigned char byte, std::string& out) {
  if (n_held_ > 0) {
    const auto first = static_cast<unsigned char>(held_[0]);
    if (may_follow(first, n_held_, byte)) {
      held_[n_held_++] = static_cast<char>(byte);
      if (n_held_ == character_length(first)) {
        out.append(held_.data(), n_held_);
        n_held_ = 0;
      }
      return;
    }
    out += kReplacement;
    n_held_ = 0;
  }
  const std::size_t length = character_length(byte);
  if (length == 0) {
    out += kReplacement;
  } else if (length == 1) {
    out += static_cast<char>(byte);
  } else {
    held_[0] = static_cast<char>(byte);
    n_held_ = 1;
  }
}

std::string Utf8Stream::push(std::string_view bytes) {
  std::string out;
  out.reserve(n_held_ + bytes.size());
  for (const char byte : bytes) push_byte(static_cast<unsigned char>(byte), out);
  return out;
}

std::string Utf8Stream::flush() {
  if (n_held_ == 0) return {};
  n_held_ = 0;
  return std::string(kReplacement);
}

bool is_valid_utf8(std::string_view text) {
  unsigned char first = 0;
  std::size_t n_seen = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (n_seen == 0) {
      if (byte < 0x80) continue;
      if (character_length(byte) == 0) return false;
      first = byte;
      n_seen = 1;
      continue;
    }
    if (!may_follow(first, n_seen, byte)) return false;
    n_seen = n_seen + 1 == character_length(first) ? 0 : n_seen + 1;
  }
  return n_seen == 0;
}

std::string to_valid_utf8(std::string_view bytes) {
  Utf8Stream stream;
  std::string text = stream.push(bytes);
  return text += stream.flush();
}

}  // namespace ebb
