#include "chat/jinja/marked_text.h"

#include <algorithm>

namespace ebb::jinja {

MarkedText::MarkedText(std::string bytes, Source source) : bytes_(std::move(bytes)) { mark(0, bytes_.size(), source); }

void MarkedText::mark(std::size_t begin, std::size_t end, Source source) {
  if (begin == end || source == kFromTemplate) return;
  if (!marks_.empty() && marks_.back().end == begin && marks_.back().source == source) {
    marks_.back().end = end;
  } else {
    marks_.push_back({begin, end, source});
  }
}

Source MarkedText::source_at(std::size_t at) const {
  const auto mark = std::ranges::upper_bound(marks_, at, {}, &Mark::end);
  return mark != marks_.end() && mark->begin <= at ? mark->source : kFromTemplate;
}

void MarkedText::append(std::string_view bytes, Source source) {
  const std::size_t begin = bytes_.size();
  bytes_ += bytes;
  mark(begin, bytes_.size(), source);
}

void MarkedText::append(const MarkedText& text, std::size_t begin, std::size_t end) {
  const std::size_t base = bytes_.size();
  bytes_.append(text.bytes_, begin, end - begin);
  for (auto at = std::ranges::upper_bound(text.marks_, begin, {}, &Mark::end);
       at != text.marks_.end() && at->begin < end; ++at) {
    mark(base + std::max(at->begin, begin) - begin, base + std::min(at->end, end) - begin, at->source);
  }
}

MarkedText MarkedText::sub(std::size_t begin, std::size_t end) const {
  MarkedText part;
  part.append(*this, begin, end);
  part.is_markup_ = is_markup_;
  return part;
}

std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  std::size_t n = 1;
  if (first >= 0xF0) {
    n = 4;
  } else if (first >= 0xE0) {
    n = 3;
  } else if (first >= 0xC0) {
    n = 2;
  }
  return std::min(n, text.size() - at);
}

char32_t character_at(std::string_view text, std::size_t at) {
  const std::size_t n = character_bytes(text, at);
  const auto first = static_cast<unsigned char>(text[at]);
  if (n == 1) return first;
  char32_t character = first & (0xFFU >> (n + 1));
  for (std::size_t i = 1; i < n; ++i) {
    character = (character << 6) | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
  }
  return character;
}

void append_character(std::string& text, char32_t character) {
  const auto put = [&text](char32_t byte) { text += static_cast<char>(byte); };
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xC0 | (character >> 6));
    put(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    put(0xE0 | (character >> 12));
    put(0x80 | ((character >> 6) & 0x3F));
    put(0x80 | (character & 0x3F));
  } else {
    put(0xF0 | (character >> 18));
    put(0x80 | ((character >> 12) & 0x3F));
    put(0x80 | ((character >> 6) & 0x3F));
    put(0x80 | (character & 0x3F));
  }
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::size_t offset_of_character(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += character_bytes(text, at);
  return at;
}

bool is_space(char32_t c) {
  return c == ' ' || (0x09 <= c && c <= 0x0D) || (0x1C <= c && c <= 0x1F) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (0x2000 <= c && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

char32_t to_upper(char32_t c) {
  if ('a' <= c && c <= 'z') return c - 32;
  if ((0xE0 <= c && c <= 0xFE && c != 0xF7) || (0x3B1 <= c && c <= 0x3C9 && c != 0x3C2)) return c - 32;
  if (c == 0xFF) return 0x178;
  if ((0x100 <= c && c <= 0x137 && c != 0x131) || (0x14A <= c && c <= 0x177)) return c & ~char32_t{1};
  if (0x430 <= c && c <= 0x44F) return c - 32;
  if (0x450 <= c && c <= 0x45F) return c - 80;
  return c;
}

char32_t to_lower(char32_t c) {
  if ('A' <= c && c <= 'Z') return c + 32;
  if ((0xC0 <= c && c <= 0xDE && c != 0xD7) || (0x391 <= c && c <= 0x3A9 && c != 0x3A2)) return c + 32;
  if (c == 0x178) return 0xFF;
  if ((0x100 <= c && c <= 0x137 && c != 0x130) || (0x14A <= c && c <= 0x177)) return c | 1;
  if (0x410 <= c && c <= 0x42F) return c + 32;
  if (0x400 <= c && c <= 0x40F) return c + 80;
  return c;
}

Range stripped(std::string_view text, Side side, const std::string* set) {
  // In order, so that the work does not grow with the product of both lengths.
  std::vector<char32_t> characters;
  for (std::size_t i = 0; set != nullptr && i < set->size(); i += character_bytes(*set, i)) {
    characters.push_back(character_at(*set, i));
  }
  std::ranges::sort(characters);
  const auto leaves = [&](std::size_t at) {
    const char32_t character = character_at(text, at);
    return set == nullptr ? is_space(character) : std::ranges::binary_search(characters, character);
  };
  Range range{0, text.size()};
  while (side != Side::kRight && range.begin < range.end && leaves(range.begin)) {
    range.begin += character_bytes(text, range.begin);
  }
  while (side != Side::kLeft && range.begin < range.end) {
    std::size_t last = range.end - 1;
    while (last > range.begin && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    if (!leaves(last)) break;
    range.end = last;
  }
  return range;
}

}  // namespace ebb::jinja
