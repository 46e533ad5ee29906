// Small cuts of text that several rooms make.
//
// Thread rule: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace ebb {

// What stands between the marks; nothing of it is empty.
[[nodiscard]] inline std::vector<std::string_view> split_text(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(mark), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return parts;
}

// The last n bytes, and the first, or fewer: no character of UTF-8 is cut in two.
[[nodiscard]] inline std::string_view last_bytes(std::string_view text, std::size_t n) {
  std::size_t begin = text.size() - std::min(n, text.size());
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) ++begin;
  return text.substr(begin);
}
[[nodiscard]] inline std::string_view first_bytes(std::string_view text, std::size_t n) {
  std::size_t end = std::min(n, text.size());
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

// Without the spaces, tabs and line breaks around it.
[[nodiscard]] inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \n\r\t";
  const std::size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  const std::size_t end = text.find_last_not_of(kSpace);
  return end == std::string_view::npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

}  // namespace ebb
