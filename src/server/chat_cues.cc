#include "server/chat_cues.h"

#include <algorithm>

#include "server/chat_history.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

// Messages that are looked at. A longer loop asks for what its last calls and results speak of, and for what its user said.
constexpr std::size_t kMostMessages = 16;
// Of what is not the user's, from each of its ends: the rest of a long one is what was read.
constexpr std::size_t kEndBytes = 2048;

void add_text(const Json& message, const char* field, std::string& text) {
  const auto found = message.find(field);
  if (found == message.end() || !found->is_string()) return;
  if (!text.empty()) text += '\n';
  text += found->get_ref<const std::string&>();
}

// A call says what is looked for by its function's name and by the values that it is given, not by the names of these.
void add_values(const Json& value, std::string& text) {
  if (value.is_string()) {
    text += ' ' + value.get_ref<const std::string&>();
  } else if (value.is_number()) {
    text += ' ' + value.dump();
  } else if (value.is_structured()) {
    for (const Json& part : value) add_values(part, text);
  }
}

std::string text_of(const Json& message) {
  std::string text;
  add_text(message, "content", text);
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return text;
  for (const Json& call : *calls) {
    const Json function = call.is_object() ? call.value("function", Json::object()) : Json::object();
    std::string called;
    add_text(function, "name", called);
    if (function.is_object() && function.contains("arguments")) add_values(function["arguments"], called);
    text += '\n' + called;
  }
  return text;
}

}  // namespace

std::vector<Cue> chat_cues(const ChatRequest& request) {
  std::vector<SaidText> said;
  bool is_before = false;
  for (auto message = request.messages.rbegin(); message != request.messages.rend(); ++message) {
    const Source source = source_of(message->value("role", std::string()));
    const bool is_unfinished = request.continues_last_message && message == request.messages.rbegin();
    // What the server or the client says before any message is of no one turn.
    const bool is_first = static_cast<std::size_t>(request.messages.rend() - message) <= request.n_put_in_front + 1;
    is_before |= source == Source::kAssistant && !message->contains("tool_calls") && !is_unfinished;
    is_before |= source == Source::kSystem && is_first;
    const bool is_told = std::ranges::any_of(
        said, [&](const SaidText& one) { return one.source == source && one.is_before == is_before; });
    // What was asked before is the user's, or stands in the first system text; the reply to it says what "it" is.
    const bool may_ask_before =
        source == Source::kUser || source == Source::kAssistant || (source == Source::kSystem && is_first);
    if (is_before && (is_told || !may_ask_before)) continue;
    const bool is_users_last = source == Source::kUser && !is_told;
    if (said.size() >= kMostMessages && !is_users_last && !is_before) continue;
    std::string text = text_of(*message);
    if (source != Source::kUser && text.size() > 2 * kEndBytes) text.erase(kEndBytes, text.size() - 2 * kEndBytes);
    said.push_back({.text = std::move(text), .source = source, .is_before = is_before});
  }
  std::ranges::reverse(said);
  return find_cues(said);
}

}  // namespace ebb
