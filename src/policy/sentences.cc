#include "policy/sentences.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/split_text.h"
#include "policy/words.h"

namespace ebb {
namespace {

// A sentence of fewer words is part of the one before it. More: short facts share their vector with what stands beside them. Fewer:
// lines of lists and code each cost a vector.
constexpr std::size_t kLeastPassageWords = 4;

// A word that goes on across the border is whole.
std::size_t begin_of_word(std::string_view text, std::size_t at) {
  while (at > 0 && at < text.size() && is_word_byte(text[at - 1]) && is_word_byte(text[at])) --at;
  return at;
}

// Where the sentence begins that stands at `at`: behind the last mark before it, or its word's begin where there is none.
std::size_t begin_of_sentence(std::string_view text, std::size_t at) {
  std::size_t begin = std::string_view::npos;
  for (std::size_t i = 0; i < at;) {
    const std::size_t n = sentence_mark_bytes(text, i);
    if (n > 0) begin = i + n;
    i += std::max<std::size_t>(n, 1);
  }
  return begin == std::string_view::npos ? begin_of_word(text, at) : begin;
}

void add_passage(std::string_view sentence, std::vector<std::string>& texts) {
  const std::size_t n_words = split_words(sentence).size();
  if (n_words == 0) return;
  if (n_words < kLeastPassageWords && !texts.empty()) {
    texts.back() += fmt::format(" {}", trimmed(sentence));
  } else {
    texts.emplace_back(trimmed(sentence));
  }
}

}  // namespace

std::size_t sentence_mark_bytes(std::string_view text, std::size_t at) {
  const char c = text[at];
  if (c == '\n' || c == '?' || c == '!') return 1;
  if (c == '.' || c == ';') {
    return at + 1 == text.size() || text[at + 1] == ' ' || text[at + 1] == '\n' || text[at + 1] == '\t' ? 1 : 0;
  }
  for (const std::string_view mark : {"\u3002", "\uff01", "\uff1f", "\u061f", "\uff1b"}) {
    if (text.substr(at).starts_with(mark)) return mark.size();
  }
  return 0;
}

Passages split_passages(std::string_view text, std::size_t own_begin) {
  Passages passages;
  const std::size_t first = begin_of_sentence(text, own_begin);
  std::size_t begin = first;
  for (std::size_t at = begin; at < text.size();) {
    const std::size_t n = sentence_mark_bytes(text, at);
    at += std::max<std::size_t>(n, 1);
    if (n == 0) continue;
    add_passage(text.substr(begin, at - begin), passages.texts);
    begin = at;
  }
  if (passages.texts.empty()) add_passage(text.substr(begin), passages.texts);
  passages.first_begins_before = !trimmed(text.substr(first, own_begin - first)).empty();
  return passages;
}

}  // namespace ebb
