#include "server/messages_shape.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/hash.h"
#include "json/closed_object.h"
#include "server/replies.h"

namespace ebb {
namespace {

constexpr std::string_view kPing = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

// Clients send blocks of thinking back with what proves them theirs; nothing here looks at it.
std::string signature_of(std::string_view thinking) { return hash_bytes(std::as_bytes(std::span(thinking))).hex(); }

Json text_block(std::string text) { return {{"type", "text"}, {"text", std::move(text)}}; }

Json thinking_block(std::string text, std::string signature) {
  return {{"type", "thinking"}, {"thinking", std::move(text)}, {"signature", std::move(signature)}};
}

Json call_block(const std::string& id, const std::string& name, Json input) {
  return {{"type", "tool_use"}, {"id", id}, {"name", name}, {"input", std::move(input)}};
}

std::string_view stop_reason(const Choice& choice, std::int32_t max_tokens) {
  const RequestEnd& end = *choice.end;
  if (end.reason == FinishReason::kStopString && !end.stop_string.empty()) return "stop_sequence";
  if (end.reason == FinishReason::kEndOfGeneration || end.reason == FinishReason::kStopString) {
    return choice.reply.calls.empty() ? "end_turn" : "tool_use";
  }
  return is_ended_by_context(choice, max_tokens) ? "model_context_window_exceeded" : "max_tokens";
}

class MessagesShape final : public ReplyShape {
 public:
  explicit MessagesShape(MessagesShapeOptions options) : options_(std::move(options)) {}

  // The message begins when it is known what of its prompt was cached.
  std::string begin() override { return {}; }

  std::string progress(const Choice& choice) override {
    start(choice);
    return take_events();
  }

  std::string deltas(Choice& choice, std::span<const ReplyDelta> deltas) override {
    start(choice);
    for (const ReplyDelta& delta : deltas) {
      switch (delta.kind) {
        case ReplyDelta::Kind::kReasoning: add_thinking(delta.text); break;
        case ReplyDelta::Kind::kContent:
          open("text", text_block(""));
          delta_event({{"type", "text_delta"}, {"text", delta.text}});
          break;
        case ReplyDelta::Kind::kCallBegin:
          close();
          open("tool_use", call_block(delta.id, delta.text, Json::object()));
          break;
        case ReplyDelta::Kind::kCallArguments:
          delta_event({{"type", "input_json_delta"}, {"partial_json", delta.text}});
          break;
        case ReplyDelta::Kind::kCallEnd: break;
      }
    }
    return take_events();
  }

  std::string end(Choice& choice) override {
    start(choice);
    close();
    return take_events();
  }

  std::string end_all(std::span<const Choice> choices) override {
    const Choice& choice = choices.front();
    Json ended = {{"delta", ending(choice)}, {"usage", usage(choices)}, {"ebb", ebb_json(options_.head, choices)}};
    if (options_.cleared) ended["context_management"] = applied_edits_json(*options_.cleared);
    event("message_delta", ended);
    event("message_stop", Json::object());
    return take_events();
  }

  std::string failure(const ApiError& error) override {
    append_sse(events_, json_text(anthropic_error_json(error)), "error");
    return take_events();
  }

  [[nodiscard]] ErrorShape error_shape() const override { return anthropic_error_json; }
  [[nodiscard]] std::string_view ping() const override { return kPing; }

  Json whole(std::span<Choice> choices) override {
    const Choice& choice = choices.front();
    Json content = Json::array();
    if (const std::string& text = choice.reply.reasoning; !text.empty()) {
      content.push_back(thinking_block(options_.hides_thinking ? "" : text, signature_of(text)));
    }
    if (!choice.reply.content.empty()) content.push_back(text_block(choice.reply.content));
    for (const ReplyCall& call : choice.reply.calls) {
      content.push_back(call_block(call.id, call.name, read_input(call)));
    }
    Json json = message(std::move(content), usage(choices));
    json.update(ending(choice));
    json["ebb"] = ebb_json(options_.head, choices);
    if (options_.cleared) json["context_management"] = applied_edits_json(*options_.cleared);
    return json;
  }

 private:
  // --- events ---

  void event(const std::string& name, const Json& members) {
    Json json = {{"type", name}};
    json.update(members);
    append_sse(events_, json_text(json), name);
  }

  void delta_event(const Json& delta) { event("content_block_delta", {{"index", n_blocks_ - 1}, {"delta", delta}}); }

  std::string take_events() { return std::exchange(events_, {}); }

  // What Anthropic's servers send behind it, too.
  void start(const Choice& choice) {
    if (std::exchange(has_started_, true)) return;
    const std::int32_t n_cached = choice.progress ? choice.progress->n_cached : 0;
    const UsageTotals so_far = {.n_prompt = choice.n_prompt, .n_cached = n_cached};
    event("message_start", {{"message", message(Json::array(), usage(without_cleared(so_far, n_cached)))}});
    events_ += kPing;
  }

  // A block of this type, where none is open.
  void open(const char* type, const Json& block) {
    if (type_ == type) return;
    close();
    event("content_block_start", {{"index", n_blocks_++}, {"content_block", block}});
    type_ = type;
  }

  void add_thinking(const std::string& text) {
    open("thinking", thinking_block("", ""));
    thinking_ += text;
    if (!options_.hides_thinking) delta_event({{"type", "thinking_delta"}, {"thinking", text}});
  }

  void close() {
    if (type_.empty()) return;
    if (type_ == "thinking") {
      delta_event({{"type", "signature_delta"}, {"signature", signature_of(std::exchange(thinking_, {}))}});
    }
    event("content_block_stop", {{"index", n_blocks_ - 1}});
    type_ = {};
  }

  // --- the message ---

  [[nodiscard]] Json message(Json content, Json usage) const {
    return {{"id", options_.head.id},        {"type", "message"},
            {"role", "assistant"},           {"model", options_.head.model},
            {"content", std::move(content)}, {"stop_reason", nullptr},
            {"stop_sequence", nullptr},      {"usage", std::move(usage)}};
  }

  [[nodiscard]] Json ending(const Choice& choice) const {
    const std::string_view reason = stop_reason(choice, options_.max_tokens);
    Json json = {{"stop_reason", reason}, {"stop_sequence", nullptr}};
    if (reason == "stop_sequence") json["stop_sequence"] = choice.end->stop_string;
    return json;
  }

  [[nodiscard]] Json usage(std::span<const Choice> choices) const {
    const UsageTotals totals = usage_totals(choices);
    return usage(without_cleared(totals, totals.n_prompt - choices.front().end->turn.n_computed));
  }

  // What the client cleared counts as nothing, also where it was computed first or came back to be seen (ebb.cleared_in_sight): the same when a
  // message begins and when it ends. `n_valid`: tokens of the prompt that were there before it.
  [[nodiscard]] UsageTotals without_cleared(UsageTotals totals, std::int32_t n_valid) const {
    if (!options_.cleared) return totals;
    totals.n_cached = std::max(0, n_valid - options_.cleared->n_tokens_of_first(n_valid));
    totals.n_cleared = options_.cleared->n_tokens();
    return totals;
  }

  // Each token of the prompt that is not cleared is counted as one of three: read from the cache, computed and marked to be kept, or
  // computed.
  [[nodiscard]] Json usage(const UsageTotals& totals) const {
    const std::int32_t n_input = std::max(0, totals.n_prompt - totals.n_cached - totals.n_cleared);
    const std::int32_t n_created = std::clamp(options_.n_marked_tokens - totals.n_cached, 0, n_input);
    return {{"input_tokens", n_input - n_created},
            {"cache_creation_input_tokens", n_created},
            {"cache_read_input_tokens", totals.n_cached},
            {"output_tokens", totals.n_generated},
            {"output_tokens_details", {{"thinking_tokens", totals.n_thinking}}}};
  }

  // Of a call that broke off what is whole, as clients read it of a stream.
  static Json read_input(const ReplyCall& call) {
    return call.arguments.empty() ? Json::object() : closed_object(call.arguments);
  }

  MessagesShapeOptions options_;
  bool has_started_ = false;
  std::int32_t n_blocks_ = 0;
  std::string_view type_;  // of the open block; "": none is
  std::string thinking_;   // of the open block
  std::string events_;     // that are not written yet
};

}  // namespace

std::unique_ptr<ReplyShape> make_messages_shape(MessagesShapeOptions options) {
  return std::make_unique<MessagesShape>(std::move(options));
}

}  // namespace ebb
