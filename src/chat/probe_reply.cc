#include "chat/probe_reply.h"

#include "base/split_text.h"
#include "chat/reply_parser.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kAsked = "zqasked";
constexpr std::string_view kSaid = "zqsaid";

// What stands behind the user's message.
std::optional<std::string> render_turn(const ChatTemplate& chat_template, const TemplateTokens& tokens,
                                       const ProbeReply& reply) {
  ChatRequest request;
  request.add_generation_prompt = false;
  request.messages.push_back({{"role", "user"}, {"content", kAsked}});
  Json message = {{"role", "assistant"}, {"content", reply.content}};
  request.tools = Json::array();
  if (!reply.calls.empty()) message["tool_calls"] = Json::array();
  for (const ProbeCall& call : reply.calls) {
    message["tool_calls"].push_back(
        {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  const Json parameters = {{"type", "object"}, {"properties", Json::object()}};
  request.tools.push_back(
      {{"type", "function"}, {"function", {{"name", "zqtool"}, {"description", "x"}, {"parameters", parameters}}}});
  request.messages.push_back(std::move(message));
  const Result<ChatPrompt> prompt = render_chat_request(chat_template, request, tokens);
  if (!prompt.ok()) return std::nullopt;
  std::string text = prompt->text();
  const std::size_t asked = text.rfind(kAsked);
  if (asked == std::string::npos) return std::nullopt;
  return text.substr(asked + kAsked.size());
}

}  // namespace

std::size_t n_common_beginning(std::string_view one, std::string_view other) {
  std::size_t n = 0;
  while (n < one.size() && n < other.size() && one[n] == other[n]) ++n;
  if (n == one.size()) return n;
  const std::size_t open = one.substr(0, n).rfind('<');
  const std::size_t close = one.substr(0, n).rfind('>');
  return open != one.npos && (close == one.npos || close < open) ? open : n;
}

std::optional<std::string> render_reply(const ChatTemplate& chat_template, const TemplateTokens& tokens,
                                        const ProbeReply& reply) {
  const std::optional<std::string> plain =
      render_turn(chat_template, tokens, {.content = std::string(kSaid), .calls = {}});
  std::optional<std::string> turn = render_turn(chat_template, tokens, reply);
  if (!plain || !turn) return std::nullopt;
  const std::size_t said = plain->find(kSaid);
  if (said == std::string::npos) return std::nullopt;
  const std::string_view begin = std::string_view(*plain).substr(0, said);
  const std::string_view end = std::string_view(*plain).substr(said + kSaid.size());
  std::string_view text = *turn;
  text.remove_prefix(n_common_beginning(begin, text));
  if (text.ends_with(end)) {
    text.remove_suffix(end.size());
  } else if (const std::size_t mark = trimmed(end).rfind('<'); mark != end.npos) {
    // At least the mark that ends generation.
    text = text.substr(0, text.rfind(trimmed(end).substr(mark)));
  }
  if (const std::optional<ThinkTags> think = find_think_tags(chat_template.source())) {
    for (const std::string& mark : {think->open, think->close}) {
      if (trimmed(text).starts_with(mark)) text = trimmed(text).substr(mark.size());
    }
  }
  return std::string(text);
}

std::optional<std::string> render_turn_end(const ChatTemplate& chat_template, const TemplateTokens& tokens) {
  const std::optional<std::string> plain =
      render_turn(chat_template, tokens, {.content = std::string(kSaid), .calls = {}});
  if (!plain || plain->find(kSaid) == std::string::npos) return std::nullopt;
  return std::string(trimmed(std::string_view(*plain).substr(plain->find(kSaid) + kSaid.size())));
}

}  // namespace ebb
