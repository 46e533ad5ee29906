#include "server/chat_shape.h"

#include <map>
#include <utility>

#include "server/custom_tools.h"
#include "server/replies.h"
#include "server/sse.h"

namespace ebb {
namespace {

class ChatShape final : public ReplyShape {
 public:
  ChatShape(const Vocabulary& vocabulary, ChatShapeOptions options)
      : vocabulary_(vocabulary), options_(std::move(options)) {}

  // The first chunk says the role and nothing else.
  std::string begin() override {
    std::string bytes;
    for (std::int32_t i = 0; i < options_.n_choices; ++i) bytes += sse_event(role_chunk(i));
    return bytes;
  }

  std::string progress(const Choice& choice) override {
    if (!options_.head.tells_progress) return {};
    Json json = role_chunk(choice.index);
    json["prompt_progress"] = progress_json(*choice.progress);
    if (options_.head.tells_timings) json["timings"] = timings_so_far_json(choice);
    return sse_event(json);
  }

  std::string deltas(Choice& choice, std::span<const ReplyDelta> deltas) override {
    std::string bytes;
    for (const ReplyDelta& delta : deltas) {
      if (hold_custom(choice.index, delta)) continue;
      if (delta.kind == ReplyDelta::Kind::kCallEnd) {
        bytes += take_custom(choice.index);
        continue;
      }
      if ((options_.says_function_call && delta.call > 0)) continue;
      Json json = chunk(choice.index, delta_json(delta));
      json["choices"][0]["logprobs"] = take_logprobs(choice, vocabulary_);
      if (options_.head.tells_timings) json["timings"] = timings_so_far_json(choice);
      bytes += sse_event(json);
    }
    return bytes;
  }

  std::string end(Choice& choice) override {
    const std::string cut = take_custom(choice.index);
    Json json = chunk(choice.index, Json::object());
    json["choices"][0]["logprobs"] = take_logprobs(choice, vocabulary_);
    json["choices"][0]["finish_reason"] = reason_of(choice);
    // Where no usage chunk follows, this is the last.
    if (!options_.include_usage && options_.n_choices == 1) {
      json["timings"] = timings_json({&choice, 1});
      json["ebb"] = ebb_json(options_.head, {&choice, 1});
    }
    return cut + sse_event(json);
  }

  std::string end_all(std::span<const Choice> choices) override {
    std::string bytes;
    if (options_.include_usage) {
      Json json = shell();
      add_counters(json, choices);
      bytes = sse_event(json);
    }
    return bytes += kSseDone;
  }

  Json whole(std::span<Choice> choices) override {
    Json json = reply_shell(options_.head, "chat.completion");
    for (Choice& choice : choices) {
      json["choices"].push_back({{"index", choice.index},
                                 {"message", message(choice.reply)},
                                 {"logprobs", take_logprobs(choice, vocabulary_)},
                                 {"finish_reason", reason_of(choice)}});
    }
    add_counters(json, choices);
    return json;
  }

 private:
  [[nodiscard]] Json shell() const { return reply_shell(options_.head, "chat.completion.chunk"); }

  [[nodiscard]] Json chunk(std::int32_t index, const Json& delta) const {
    Json json = shell();
    json["choices"].push_back({{"index", index}, {"delta", delta}, {"logprobs", nullptr}, {"finish_reason", nullptr}});
    return json;
  }

  [[nodiscard]] Json role_chunk(std::int32_t index) const {
    return chunk(index, {{"role", "assistant"}, {"content", nullptr}});
  }

  void add_counters(Json& json, std::span<const Choice> choices) const {
    json["usage"] = usage_json(choices);
    json["timings"] = timings_json(choices);
    json["ebb"] = ebb_json(options_.head, choices);
  }

  [[nodiscard]] std::string_view reason_of(const Choice& choice) const {
    const std::string_view name = finish_name(choice);
    return options_.says_function_call && name == "tool_calls" ? "function_call" : name;
  }

  // Whether the delta is of a custom tool's call and not its end: how its text reads is known there.
  bool hold_custom(std::int32_t choice, const ReplyDelta& delta) {
    if (delta.kind == ReplyDelta::Kind::kCallBegin && options_.custom_tools.contains(delta.text)) {
      held_[choice] = {.call = delta.call, .written = {.id = delta.id, .name = delta.text}};
      return true;
    }
    const auto held = held_.find(choice);
    if (delta.kind != ReplyDelta::Kind::kCallArguments || held == held_.end()) return false;
    held->second.written.arguments += delta.text;
    return true;
  }

  std::string take_custom(std::int32_t choice) {
    const auto held = held_.find(choice);
    if (held == held_.end()) return {};
    Json call = call_json(held->second.written);
    call["index"] = held->second.call;
    held_.erase(held);
    return sse_event(chunk(choice, {{"tool_calls", Json::array({call})}}));
  }

  [[nodiscard]] Json call_json(const ReplyCall& call) const {
    if (options_.custom_tools.contains(call.name)) {
      return {{"id", call.id},
              {"type", "custom"},
              {"custom", {{"name", call.name}, {"input", custom_input(call.arguments)}}}};
    }
    return {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
  }

  [[nodiscard]] Json delta_json(const ReplyDelta& delta) const {
    switch (delta.kind) {
      case ReplyDelta::Kind::kReasoning: return {{"reasoning_content", delta.text}};
      case ReplyDelta::Kind::kContent: return {{"content", delta.text}};
      case ReplyDelta::Kind::kCallBegin: {
        const Json function = {{"name", delta.text}, {"arguments", ""}};
        if (options_.says_function_call) return {{"function_call", function}};
        const Json call = {{"index", delta.call}, {"id", delta.id}, {"type", "function"}, {"function", function}};
        return {{"tool_calls", Json::array({call})}};
      }
      default: break;
    }
    const Json function = {{"arguments", delta.text}};
    if (options_.says_function_call) return {{"function_call", function}};
    const Json call = {{"index", delta.call}, {"function", function}};
    return {{"tool_calls", Json::array({call})}};
  }

  [[nodiscard]] Json message(const ParsedReply& reply) const {
    Json json = {{"role", "assistant"}, {"content", reply.content}};
    if (!reply.reasoning.empty()) json["reasoning_content"] = reply.reasoning;
    if (reply.calls.empty()) return json;
    if (reply.content.empty()) json["content"] = nullptr;
    if (options_.says_function_call) {
      const ReplyCall& call = reply.calls.front();
      json["function_call"] = {{"name", call.name}, {"arguments", call.arguments}};
      return json;
    }
    for (const ReplyCall& call : reply.calls) json["tool_calls"].push_back(call_json(call));
    return json;
  }

  const Vocabulary& vocabulary_;
  ChatShapeOptions options_;
  struct HeldCall {
    std::size_t call = 0;
    ReplyCall written;
  };
  // By choice, a custom tool's call that is being written.
  std::map<std::int32_t, HeldCall> held_;
};

}  // namespace

std::unique_ptr<ReplyShape> make_chat_shape(const Vocabulary& vocabulary, ChatShapeOptions options) {
  return std::make_unique<ChatShape>(vocabulary, std::move(options));
}

}  // namespace ebb
