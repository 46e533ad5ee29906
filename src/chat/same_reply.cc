#include "chat/same_reply.h"

#include <algorithm>
#include <utility>

#include "json/parse_json.h"

namespace ebb {
namespace {

// Without the white space that stands beside JSON's marks, where it says nothing, broken off or not.
std::string without_white_space(std::string_view json) {
  const auto is_one_of = [](std::string_view all, char c) { return all.find(c) != std::string_view::npos; };
  constexpr std::string_view kMarks = "{}[]:,";
  std::string text;
  bool in_string = false;
  bool has_space = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (!in_string && is_one_of(" \t\n\r", c)) {
      has_space = true;
      continue;
    }
    const bool says_nothing = text.empty() || is_one_of(kMarks, text.back()) || is_one_of(kMarks, c);
    if (std::exchange(has_space, false) && !says_nothing) text += ' ';
    text += c;
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\' && i + 1 < json.size()) text += json[++i];
  }
  return text;
}

bool are_same_arguments(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto first = parse_json(a);
  const auto second = parse_json(b);
  // Members of a plain json have no order.
  if (first.ok() && second.ok()) return nlohmann::json(*first) == nlohmann::json(*second);
  if (first.ok() || second.ok()) return false;
  const std::string broken_off = without_white_space(a);
  return broken_off.starts_with('{') && broken_off == without_white_space(b);
}

bool are_same_calls(const ReplyCall& a, const ReplyCall& b) {
  return a.name == b.name && are_same_arguments(a.arguments, b.arguments);
}

}  // namespace

bool is_same_reply(const ReplyRules& rules, std::string_view written, std::string_view said) {
  const ParsedReply a = parse_reply(rules, written);
  const ParsedReply b = parse_reply(rules, said);
  return a.reasoning == b.reasoning && a.content == b.content && std::ranges::equal(a.calls, b.calls, are_same_calls);
}

}  // namespace ebb
