#include "chat/calls/call_form.h"

#include <algorithm>
#include <cctype>

#include "chat/calls/call_reader.h"
#include "json/json_string.h"

namespace ebb {
namespace {

bool is_mark_letter(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '/'; }

// The length of the mark at the text's beginning; 0: none.
std::size_t mark_bytes(std::string_view text) {
  if (text.starts_with('<')) {
    const std::size_t end = text.find_first_of(">\n", 1);
    return end == text.npos || text[end] != '>' ? 0 : end + 1;
  }
  if (text.starts_with('[')) {
    std::size_t end = 1;
    while (end < text.size() && is_mark_letter(text[end])) ++end;
    return end > 1 && end < text.size() && text[end] == ']' ? end + 1 : 0;
  }
  return 0;
}

}  // namespace

bool ArgumentTags::tells_types() const {
  return std::ranges::any_of(key_ends, [&](const auto& one) { return one.second != key_ends.begin()->second; });
}

std::string first_mark(std::string_view text) {
  while (!text.empty() && is_call_space(text.front())) text.remove_prefix(1);
  if (const std::size_t n = mark_bytes(text); n > 0) return std::string(text.substr(0, n));
  // An XML tag that goes on into a name: <function=, <invoke name=".
  return std::string(text.substr(0, text.find_first_of(" \n\r\t{[\"", text.starts_with('[') ? 1 : 0)));
}

std::string CallForm::written_name(std::string_view name) const {
  if (!keys) return std::string(name);
  const std::string quoted = to_json_string(name);
  return quoted.substr(1, quoted.size() - 2);
}

std::string CallForm::opener() const { return first_mark(open + call.front().text); }

std::vector<std::string> CallForm::marks() const {
  std::vector<std::string> texts = {open, between, close};
  for (const CallPiece& piece : call) texts.push_back(piece.text);
  if (tags) {
    texts.insert(texts.end(), {tags->before_key, tags->value_end});
    for (const auto& [type, text] : tags->key_ends) texts.push_back(text);
  }
  std::vector<std::string> marks;
  for (const std::string& text : texts) {
    for (std::string& mark : marks_in(text)) {
      if (std::ranges::find(marks, mark) == marks.end()) marks.push_back(std::move(mark));
    }
  }
  return marks;
}

std::vector<std::string> marks_in(std::string_view text) {
  std::vector<std::string> marks;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t n = mark_bytes(text.substr(i));
    if (n == 0) continue;
    std::string mark(text.substr(i, n));
    if (std::ranges::find(marks, mark) == marks.end()) marks.push_back(std::move(mark));
    i += n - 1;
  }
  return marks;
}

}  // namespace ebb
