#include "chat/same_reply.h"

#include <algorithm>

#include "json/parse_json.h"

namespace ebb {
namespace {

bool are_same_arguments(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto first = parse_json(a);
  const auto second = parse_json(b);
  // Members of a plain json have no order.
  return first.ok() && second.ok() && nlohmann::json(*first) == nlohmann::json(*second);
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
