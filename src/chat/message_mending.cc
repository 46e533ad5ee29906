#include "chat/message_mending.h"

#include <algorithm>
#include <string>
#include <utility>

#include "chat/call_ids.h"
#include "chat/calls/call_format.h"
#include "json/closed_object.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

bool has(unsigned mendings, Mending mending) { return (mendings & static_cast<unsigned>(mending)) != 0; }
unsigned bit(bool applies, Mending mending) { return applies ? static_cast<unsigned>(mending) : 0U; }

bool has_calls(const Json& message) { return message.contains("tool_calls"); }

std::string joined(const std::string& first, const std::string& second) {
  return first.empty() || second.empty() ? first + second : first + "\n\n" + second;
}

void write_arguments(Json& message) {
  if (!has_calls(message)) return;
  for (Json& call : message["tool_calls"]) {
    Json& arguments = call["function"]["arguments"];
    if (!arguments.is_string()) arguments = arguments.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

bool has_broken_arguments(const Json& message) {
  return has_calls(message) && std::ranges::any_of(message["tool_calls"], [](const Json& call) {
           return call["function"]["arguments"].is_string();
         });
}

void close_arguments(Json& message) {
  if (!has_calls(message)) return;
  for (Json& call : message["tool_calls"]) {
    Json& arguments = call["function"]["arguments"];
    if (arguments.is_string()) arguments = closed_object(arguments.get<std::string>());
  }
}

void write_calls(Json& message, const CallFormat& format) {
  if (!has_calls(message)) return;
  std::vector<WrittenCall> calls;
  for (const Json& call : message["tool_calls"]) {
    const Json& arguments = call["function"]["arguments"];
    calls.push_back({.name = call["function"]["name"].get<std::string>(),
                     .arguments = arguments.is_string()
                                      ? arguments.get<std::string>()
                                      : arguments.dump(-1, ' ', false, Json::error_handler_t::replace)});
  }
  std::string written = format.write(calls);
  if (written.empty()) written = hermes_calls().write(calls);
  const std::string text = message["content"].get<std::string>();
  message["content"] = text + (text.empty() ? "" : "\n") + written;
  message.erase("tool_calls");
}

// A message for each call, each followed by the results that answer it; content and thinking stay with the first.
SourcedMessages split_calls(const SourcedMessages& messages) {
  SourcedMessages split;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i].message;
    if (!has_calls(message) || message["tool_calls"].size() < 2) {
      split.push_back(messages[i]);
      continue;
    }
    std::size_t end = i + 1;
    while (end < messages.size() && messages[end].message["role"] == "tool") ++end;
    std::vector<bool> placed(end - i - 1, false);
    const Json& calls = message["tool_calls"];
    for (std::size_t c = 0; c < calls.size(); ++c) {
      Json one = message;
      one["tool_calls"] = Json::array({calls[c]});
      if (c > 0) {
        one["content"] = "";
        one.erase("reasoning_content");
      }
      split.push_back({std::move(one), messages[i].source});
      for (std::size_t r = i + 1; r < end; ++r) {
        const Json& result = messages[r].message;
        const bool answers = result.contains("tool_call_id") && calls[c].contains("id")
                                 ? result["tool_call_id"] == calls[c]["id"]
                                 : r - i - 1 == c;
        if (!answers || placed[r - i - 1]) continue;
        placed[r - i - 1] = true;
        split.push_back(messages[r]);
      }
    }
    for (std::size_t r = i + 1; r < end; ++r) {
      if (!placed[r - i - 1]) split.push_back(messages[r]);
    }
    i = end - 1;
  }
  return split;
}

SourcedMessages join_system(const SourcedMessages& messages) {
  SourcedMessages rest;
  std::string text;
  std::optional<std::size_t> source = 0;
  for (const SourcedMessage& entry : messages) {
    if (entry.message["role"] != "system") {
      rest.push_back(entry);
    } else {
      if (text.empty()) source = entry.source;
      text = joined(text, entry.message["content"].get<std::string>());
    }
  }
  const auto user =
      std::ranges::find_if(rest, [](const SourcedMessage& entry) { return entry.message["role"] == "user"; });
  if (user == rest.end()) {
    rest.insert(rest.begin(), {Json{{"role", "user"}, {"content", text}}, source});
  } else {
    user->message["content"] = joined(text, user->message["content"].get<std::string>());
  }
  return rest;
}

// For templates that show only one system message. What comes later is said where it stood, so that the prompt in front of it stays.
SourcedMessages keep_one_system(const SourcedMessages& messages) {
  SourcedMessages result;
  bool is_front = true;
  for (const SourcedMessage& entry : messages) {
    const bool is_system = entry.message["role"] == "system";
    is_front = is_front && is_system;
    if (is_front && !result.empty()) {
      Json& content = result.front().message["content"];
      content = joined(content.get<std::string>(), entry.message["content"].get<std::string>());
      continue;
    }
    result.push_back(entry);
    if (is_system && !is_front) result.back().message["role"] = "user";
  }
  return result;
}

// For templates that write either what is said or the calls.
SourcedMessages part_calls(const SourcedMessages& messages) {
  SourcedMessages result;
  for (const SourcedMessage& entry : messages) {
    result.push_back(entry);
    if (!has_calls(entry.message) || entry.message["content"] == "") continue;
    result.back().message.erase("tool_calls");
    Json calls = {{"role", "assistant"}, {"content", ""}, {"tool_calls", entry.message["tool_calls"]}};
    result.push_back({std::move(calls), entry.source});
  }
  return result;
}

// For templates that want nine letters and digits: call and result alike, and the same in every turn. Calls without an id are numbered;
// results without one answer the calls in front of them in order.
void shorten_ids(SourcedMessages& messages) {
  const auto shorten = [](Json& of, const char* name, const std::string& otherwise) {
    const auto id = of.find(name);
    of[name] = CallIds::short_id(id != of.end() && id->is_string() ? id->get<std::string>() : otherwise);
  };
  std::size_t n_calls = 0;
  std::size_t n_results = 0;
  std::vector<std::string> ids;
  for (auto& [message, source] : messages) {
    if (message["role"] == "tool") {
      const bool is_known = n_results < ids.size();
      shorten(message, "tool_call_id", is_known ? ids[n_results] : "result");
      ++n_results;
    }
    if (!has_calls(message)) continue;
    ids.clear();
    n_results = 0;
    for (Json& call : message["tool_calls"]) {
      shorten(call, "id", fmt::format("call {}", ++n_calls));
      ids.push_back(call["id"].get<std::string>());
    }
  }
}

// For templates that know no role for them.
void say_result(Json& message) {
  if (message["role"] != "tool") return;
  const std::string name = message.contains("name") ? " of " + message["name"].get<std::string>() : "";
  message = {{"role", "user"}, {"content", fmt::format("Result{}:\n{}", name, message["content"].get<std::string>())}};
}

bool is_behind_result(const SourcedMessage& before, const SourcedMessage& message) {
  return before.message["role"] == "tool" && message.message["role"] == "user";
}

// For templates that want the assistant's turn behind results.
SourcedMessages join_into_results(const SourcedMessages& messages) {
  SourcedMessages result;
  for (const SourcedMessage& entry : messages) {
    if (result.empty() || !is_behind_result(result.back(), entry)) {
      result.push_back(entry);
      continue;
    }
    Json& content = result.back().message["content"];
    content = joined(content.get<std::string>(), entry.message["content"].get<std::string>());
  }
  return result;
}

bool says_nothing(const Json& message) {
  return message["role"] == "assistant" && !has_calls(message) && message["content"] == "" &&
         !message.contains("reasoning_content");
}

bool may_join(const Json& first, const Json& second) {
  return first["role"] == second["role"] && first["role"] != "tool" && !has_calls(first) && !has_calls(second);
}

SourcedMessages join_neighbours(const SourcedMessages& messages) {
  SourcedMessages result;
  for (const SourcedMessage& entry : messages) {
    if (!result.empty() && may_join(result.back().message, entry.message)) {
      Json& content = result.back().message["content"];
      content = joined(content.get<std::string>(), entry.message["content"].get<std::string>());
    } else {
      result.push_back(entry);
    }
  }
  return result;
}

}  // namespace

unsigned mendings_of_broken(const SourcedMessages& messages) {
  const auto is_broken = [](const SourcedMessage& entry) { return has_broken_arguments(entry.message); };
  return bit(std::ranges::any_of(messages, is_broken), Mending::kClosedArguments);
}

unsigned applicable_mendings(const SourcedMessages& messages) {
  const auto any = [&](auto is) {
    return std::ranges::any_of(messages, [&](const SourcedMessage& entry) { return is(entry.message); });
  };
  const auto joinable = [](const SourcedMessage& a, const SourcedMessage& b) { return may_join(a.message, b.message); };
  const bool has_results = any([](const Json& message) { return message["role"] == "tool"; });
  const bool has_system = any([](const Json& message) { return message["role"] == "system"; });
  const bool has_behind_result = std::ranges::adjacent_find(messages, is_behind_result) != messages.end();
  const bool has_empty = any(says_nothing);
  return bit(has_behind_result, Mending::kIntoResult) | bit(has_empty, Mending::kNoEmpty) |
         bit(any(has_calls), Mending::kArgumentsAsText) |
         bit(any([](const Json& message) { return has_calls(message) && message["tool_calls"].size() > 1; }),
             Mending::kSplitCalls) |
         bit(has_system, Mending::kJoinSystem) | bit(has_results, Mending::kResultsAsUser) |
         bit(std::ranges::adjacent_find(messages, joinable) != messages.end() || has_system || has_results || has_empty,
             Mending::kJoinNeighbours);
}

SourcedMessages mend(SourcedMessages messages, unsigned mendings, const CallFormat& calls) {
  if (has(mendings, Mending::kNoEmpty)) {
    std::erase_if(messages, [](const SourcedMessage& entry) { return says_nothing(entry.message); });
  }
  if (has(mendings, Mending::kIntoResult)) messages = join_into_results(messages);
  if (has(mendings, Mending::kShortIds)) shorten_ids(messages);
  if (has(mendings, Mending::kSplitCalls)) messages = split_calls(messages);
  if (has(mendings, Mending::kCallsApart)) messages = part_calls(messages);
  if (has(mendings, Mending::kOneSystem)) messages = keep_one_system(messages);
  for (SourcedMessage& entry : messages) {
    if (has(mendings, Mending::kClosedArguments)) close_arguments(entry.message);
    if (has(mendings, Mending::kArgumentsAsText)) write_arguments(entry.message);
    if (has(mendings, Mending::kResultsAsUser)) say_result(entry.message);
    if (has(mendings, Mending::kCallsAsText)) write_calls(entry.message, calls);
    const bool is_none = has(mendings, Mending::kContentAsNone) && has_calls(entry.message);
    if (is_none && entry.message["content"] == "") entry.message["content"] = nullptr;
  }
  if (has(mendings, Mending::kJoinSystem)) messages = join_system(messages);
  if (has(mendings, Mending::kJoinNeighbours)) messages = join_neighbours(messages);
  return messages;
}

}  // namespace ebb
