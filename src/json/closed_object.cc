#include "json/closed_object.h"

#include <deque>
#include <utility>

namespace ebb {

Json closed_object(const std::string& text) {
  constexpr std::size_t kMostLevels = 64;
  constexpr std::size_t kMostTries = 8;
  std::string closers;
  // Where the last members ended, and what was open there.
  std::deque<std::pair<std::size_t, std::string>> ends;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size() && (i == 0 || !closers.empty()); ++i) {
    if (closers.size() > kMostLevels) return Json::object();
    if (ends.size() >= kMostTries) ends.pop_front();
    const char c = text[i];
    if (c == '\\' && in_text) {
      ++i;
    } else if (c == '"') {
      in_text = !in_text;
    } else if (!in_text && (c == '{' || c == '[')) {
      closers.insert(closers.begin(), c == '{' ? '}' : ']');
    } else if (!in_text && (c == '}' || c == ']')) {
      closers.erase(0, 1);
    } else if (c == ',' && !in_text) {
      ends.emplace_back(i, closers);
    }
  }
  ends.emplace_back(text.size(), (in_text ? "\"" : "") + closers);
  for (; !ends.empty(); ends.pop_back()) {
    const Result<Json> read = parse_json(text.substr(0, ends.back().first) + ends.back().second);
    if (read.ok() && read->is_object()) return *read;
  }
  return text.starts_with('{') ? Json::object() : Json{{"text", text}};
}

}  // namespace ebb
