#include "chat/probe_reply.h"

#include "base/split_text.h"
#include "chat/reply_parser.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kAsked = "zqasked";
constexpr std::string_view kSaid = "zqsaid";

}  // namespace

std::size_t n_common_beginning(std::string_view one, std::string_view other) {
  std::size_t n = 0;
  while (n < one.size() && n < other.size() && one[n] == other[n]) ++n;
  if (n == one.size()) return n;
  const std::size_t open = one.substr(0, n).rfind('<');
  const std::size_t close = one.substr(0, n).rfind('>');
  return open != one.npos && (close == one.npos || close < open) ? open : n;
}

ReplyProber::ReplyProber(const ChatTemplate& chat_template, const TemplateTokens& tokens)
    : chat_template_(chat_template), tokens_(tokens) {
  const std::optional<std::string> plain = render_turn({.content = std::string(kSaid), .calls = {}});
  const std::size_t said = plain ? plain->find(kSaid) : std::string::npos;
  if (said != std::string::npos) around_ = {plain->substr(0, said), plain->substr(said + kSaid.size())};
}

std::optional<std::string> ReplyProber::render_turn(const ProbeReply& reply) const {
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
  const Result<ChatPrompt> prompt = render_chat_request(chat_template_, request, tokens_);
  if (!prompt.ok()) return std::nullopt;
  std::string text = prompt->text();
  const std::size_t asked = text.rfind(kAsked);
  if (asked == std::string::npos) return std::nullopt;
  return text.substr(asked + kAsked.size());
}

std::optional<std::string> ReplyProber::render(const ProbeReply& reply) const {
  if (!around_) return std::nullopt;
  const std::optional<std::string> turn = render_turn(reply);
  if (!turn) return std::nullopt;
  std::string_view text = *turn;
  text.remove_prefix(n_common_beginning(around_->begin, text));
  if (text.ends_with(around_->end)) {
    text.remove_suffix(around_->end.size());
  } else if (const std::size_t mark = turn_end().rfind('<'); mark != std::string_view::npos) {
    // At least the mark that ends generation.
    text = text.substr(0, text.rfind(turn_end().substr(mark)));
  }
  if (const std::optional<ThinkTags> think = find_think_tags(chat_template_.source())) {
    for (const std::string& mark : {think->open, think->close}) {
      if (trimmed(text).starts_with(mark)) text = trimmed(text).substr(mark.size());
    }
  }
  return std::string(text);
}

std::string_view ReplyProber::turn_end() const { return around_ ? trimmed(around_->end) : std::string_view(); }

}  // namespace ebb
