#include "policy/words.h"

#include <algorithm>
#include <cstdint>

namespace ebb {
namespace {

bool is_letter_or_digit(unsigned char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
}

char fold(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string folded(std::string_view text) {
  std::string all(text);
  std::ranges::transform(all, all.begin(), fold);
  return all;
}

// The bytes of the character at the front, 1 where they are no UTF-8, and whether it is of a script that writes no spaces
// between words: Thai to Khmer's neighbours, kana, Han and what lies about them. Hangul has spaces, and particles behind names that are no words
// by themselves, so that the same name would be several.
struct Character {
  std::size_t n_bytes = 1;
  bool is_unspaced = false;
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t lead = byte(0);
  const std::size_t n = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (n == 1 || n > text.size()) return {};
  std::uint32_t code = lead & (0xFFU >> (n + 1));
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    code = code << 6U | (byte(i) & 0x3FU);
  }
  const auto is_in = [&](std::uint32_t first, std::uint32_t last) { return code >= first && code <= last; };
  const bool is_unspaced = is_in(0x0E00, 0x0EFF) || is_in(0x1000, 0x109F) || is_in(0x1780, 0x17FF) ||
                           is_in(0x3040, 0x30FF) || is_in(0x3400, 0x9FFF) || is_in(0xF900, 0xFAFF) ||
                           is_in(0xAC00, 0xD7A3) || is_in(0x20000, 0x3FFFF);
  return {.n_bytes = n, .is_unspaced = is_unspaced};
}

// Of a script without spaces two characters are a word, each with the next; one that is alone is one.
void add_unspaced(std::string_view run, std::vector<std::string>& words) {
  std::string_view before;
  bool is_alone = true;
  while (!run.empty()) {
    const std::string_view character = run.substr(0, first_character(run).n_bytes);
    run.remove_prefix(character.size());
    if (!before.empty()) words.emplace_back(std::string(before) + std::string(character));
    is_alone = before.empty();
    before = character;
  }
  if (is_alone) words.emplace_back(before);
}

bool is_lower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

// Adds a run such as "config_server" or "configServer" whole, and its parts where it has several.
void add_spaced(std::string_view run, std::vector<std::string>& words) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  const auto end_part = [&](std::size_t end) {
    if (end > begin) parts.push_back(folded(run.substr(begin, end - begin)));
    begin = end;
  };
  for (std::size_t i = 0; i < run.size(); ++i) {
    if (run[i] == '_') {
      end_part(i);
      begin = i + 1;
    } else if (is_upper(run[i]) && i > begin) {
      // "maxItems" before the I, "HTTPServer" before the S.
      const bool begins_word = is_lower(run[i - 1]) || (i + 1 < run.size() && run[i + 1] >= 'a' && run[i + 1] <= 'z');
      if (begins_word) end_part(i);
    }
  }
  end_part(run.size());
  if (parts.size() > 1) words.push_back(folded(run));
  for (std::string& part : parts) words.push_back(std::move(part));
}

// What is written with spaces, and what is not, by turns.
void add_run(std::string_view run, std::vector<std::string>& words) {
  while (!run.empty()) {
    const bool is_unspaced = first_character(run).is_unspaced;
    std::size_t end = 0;
    while (end < run.size()) {
      const Character next = first_character(run.substr(end));
      if (next.is_unspaced != is_unspaced) break;
      end += next.n_bytes;
    }
    if (is_unspaced) {
      add_unspaced(run.substr(0, end), words);
    } else {
      add_spaced(run.substr(0, end), words);
    }
    run.remove_prefix(end);
  }
}

}  // namespace

bool is_word_byte(char c) { return is_letter_or_digit(static_cast<unsigned char>(c)) || c == '_'; }

EndedWords find_ended_words(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0 && is_word_byte(text[begin - 1])) --begin;
  EndedWords ended{.end = begin, .next = begin};
  for (std::size_t at = begin; at < text.size();) {
    const Character character = first_character(text.substr(at));
    if (character.is_unspaced) ended = {.end = at + character.n_bytes, .next = at};
    at += character.n_bytes;
  }
  return ended;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::size_t i = 0;
  while (i < text.size()) {
    std::size_t end = i;
    while (end < text.size() && is_word_byte(text[end])) ++end;
    if (end > i) add_run(text.substr(i, end - i), words);
    i = std::max(end, i + 1);
  }
  return words;
}

}  // namespace ebb
