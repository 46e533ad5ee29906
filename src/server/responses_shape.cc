#include "server/responses_shape.h"

#include <utility>

#include "json/parse_json.h"
#include "server/custom_tools.h"
#include "server/replies.h"
#include "server/sse.h"

namespace ebb {
namespace {

constexpr int kIdLetters = 24;

// Settings that clients read back.
Json repeated_settings(const Json& request) {
  Json json = {{"parallel_tool_calls", true}, {"tool_choice", "auto"}, {"tools", Json::array()}};
  for (const char* name : {"instructions", "max_output_tokens", "parallel_tool_calls", "temperature", "tool_choice",
                           "tools", "top_p", "metadata", "reasoning", "text"}) {
    if (request.contains(name) && !request[name].is_null()) json[name] = request[name];
  }
  return json;
}

Json text_part(const char* type, const std::string& text) {
  Json part = {{"type", type}, {"text", text}};
  if (part["type"] == "output_text") part["annotations"] = Json::array();
  return part;
}

class ResponsesShape final : public ReplyShape {
 public:
  ResponsesShape(ReplyHead head, const Json& request, RenamedTools renamed)
      : head_(std::move(head)), settings_(repeated_settings(request)), renamed_(std::move(renamed)) {}

  std::string begin() override {
    const Json response = make_response("in_progress");
    event("response.created", {{"response", response}});
    event("response.in_progress", {{"response", response}});
    return take_events();
  }

  // As llama.cpp's server tells it: the response is in progress still.
  std::string progress(const Choice& choice) override {
    if (!head_.tells_progress) return {};
    Json members = {{"response", bare_response("in_progress")}, {"prompt_progress", progress_json(*choice.progress)}};
    if (head_.tells_timings) members["timings"] = timings_so_far_json(choice);
    event("response.in_progress", members);
    return take_events();
  }

  std::string deltas(Choice& choice, std::span<const ReplyDelta> deltas) override {
    if (head_.tells_timings) timings_ = timings_so_far_json(choice);
    for (const ReplyDelta& delta : deltas) {
      switch (delta.kind) {
        case ReplyDelta::Kind::kReasoning: add_text("reasoning", "reasoning_text", delta.text); break;
        case ReplyDelta::Kind::kContent: add_text("message", "output_text", delta.text); break;
        case ReplyDelta::Kind::kCallBegin:
          close();
          open(call_item(delta.id, delta.text, ""));
          break;
        case ReplyDelta::Kind::kCallArguments:
          text_ += delta.text;
          // Of a custom tool's text it is known at its end how it reads.
          if (item_["type"] == "function_call") {
            item_event("response.function_call_arguments.delta", {{"delta", delta.text}});
          }
          break;
        case ReplyDelta::Kind::kCallEnd: break;
      }
    }
    timings_ = nullptr;
    return take_events();
  }

  std::string end(Choice& /*choice*/) override {
    close();
    return take_events();
  }

  std::string end_all(std::span<const Choice> choices) override {
    const Json response = ended_response(choices);
    event("response." + response["status"].get<std::string>(), {{"response", response}});
    return take_events();
  }

  std::string failure(const ApiError& error) override {
    Json response = make_response("failed");
    response["error"] = {{"code", error.type}, {"message", error.message}};
    event("response.failed", {{"response", response}});
    return take_events();
  }

  Json whole(std::span<Choice> choices) override {
    const ParsedReply& reply = choices.front().reply;
    if (!reply.reasoning.empty()) output_.push_back(text_item("reasoning", "reasoning_text", reply.reasoning));
    if (!reply.content.empty()) output_.push_back(text_item("message", "output_text", reply.content));
    for (const ReplyCall& call : reply.calls) output_.push_back(call_item(call.id, call.name, call.arguments));
    for (Json& item : output_) item["status"] = "completed";
    return ended_response(choices);
  }

 private:
  // --- items ---

  static Json text_item(const std::string& type, const char* part_type, const std::string& text) {
    Json item = {{"id", new_id(type == "message" ? "msg_" : "rs_", kIdLetters)}, {"type", type}, {"status", ""}};
    if (type == "message") item["role"] = "assistant";
    if (type == "reasoning") item["summary"] = Json::array();
    item["content"] = Json::array();
    if (!text.empty()) item["content"].push_back(text_part(part_type, text));
    return item;
  }

  [[nodiscard]] Json call_item(const std::string& id, const std::string& name, const std::string& arguments) const {
    const auto found = renamed_.find(name);
    const RenamedTool tool = found == renamed_.end() ? RenamedTool{.name = name} : found->second;
    Json item = {{"id", new_id(tool.is_custom ? "ctc_" : "fc_", kIdLetters)},
                 {"type", tool.is_custom ? "custom_tool_call" : "function_call"},
                 {"status", ""},
                 {"call_id", id},
                 {"name", tool.name}};
    if (!tool.space.empty()) item["namespace"] = tool.space;
    item[tool.is_custom ? "input" : "arguments"] = tool.is_custom ? custom_input(arguments) : arguments;
    return item;
  }

  // --- events ---

  void event(const std::string& name, const Json& members) {
    Json json = {{"type", name}, {"sequence_number", n_events_++}};
    json.update(members);
    if (!timings_.is_null()) json["timings"] = timings_;
    append_sse(events_, json_text(json), name);
  }

  void item_event(const std::string& name, const Json& members) {
    Json json = {{"item_id", item_["id"]}, {"output_index", output_.size()}};
    json.update(members);
    event(name, json);
  }

  void part_event(const std::string& name, const Json& members) {
    Json json = {{"content_index", 0}};
    json.update(members);
    item_event(name, json);
  }

  std::string take_events() { return std::exchange(events_, {}); }

  void open(Json item) {
    item_ = std::move(item);
    item_["status"] = "in_progress";
    text_.clear();
    event("response.output_item.added", {{"output_index", output_.size()}, {"item", item_}});
  }

  void add_text(const char* type, const char* part_type, const std::string& text) {
    if (item_.is_null() || item_["type"] != type) {
      close();
      open(text_item(type, part_type, ""));
      part_event("response.content_part.added", {{"part", text_part(part_type, "")}});
    }
    text_ += text;
    part_event(fmt::format("response.{}.delta", part_type), {{"delta", text}});
  }

  void close() {
    if (item_.is_null()) return;
    if (item_["type"] == "function_call") {
      item_["arguments"] = text_;
      item_event("response.function_call_arguments.done", {{"arguments", text_}, {"name", item_["name"]}});
    } else if (item_["type"] == "custom_tool_call") {
      const std::string input = custom_input(text_);
      item_["input"] = input;
      item_event("response.custom_tool_call_input.delta", {{"delta", input}});
      item_event("response.custom_tool_call_input.done", {{"input", input}});
    } else {
      const char* part_type = item_["type"] == "message" ? "output_text" : "reasoning_text";
      const Json part = text_part(part_type, text_);
      item_["content"].push_back(part);
      part_event(fmt::format("response.{}.done", part_type), {{"text", text_}});
      part_event("response.content_part.done", {{"part", part}});
    }
    item_["status"] = "completed";
    event("response.output_item.done", {{"output_index", output_.size()}, {"item", item_}});
    output_.push_back(std::exchange(item_, nullptr));
  }

  // --- the response ---

  // Without the request's settings, of which tools may be long.
  [[nodiscard]] Json bare_response(const char* status) const {
    return {{"id", head_.id},   {"object", "response"}, {"created_at", head_.created},
            {"status", status}, {"model", head_.model}, {"output", output_},
            {"error", nullptr}, {"usage", nullptr},     {"incomplete_details", nullptr},
            {"store", false}};
  }

  [[nodiscard]] Json make_response(const char* status) const {
    Json json = bare_response(status);
    json.update(settings_);
    return json;
  }

  [[nodiscard]] Json ended_response(std::span<const Choice> choices) const {
    const bool is_cut = choices.front().end->reason == FinishReason::kLength;
    Json json = make_response(is_cut ? "incomplete" : "completed");
    if (is_cut) json["incomplete_details"] = {{"reason", "max_output_tokens"}};
    const UsageTotals totals = usage_totals(choices);
    json["usage"] = {{"input_tokens", totals.n_prompt},
                     {"input_tokens_details", {{"cached_tokens", totals.n_cached}}},
                     {"output_tokens", totals.n_generated},
                     {"output_tokens_details", {{"reasoning_tokens", totals.n_thinking}}},
                     {"total_tokens", totals.n_prompt + totals.n_generated}};
    json["timings"] = timings_json(choices);
    json["ebb"] = ebb_json(head_, choices);
    return json;
  }

  ReplyHead head_;
  Json settings_;
  RenamedTools renamed_;
  Json output_ = Json::array();  // items that are closed
  Json item_ = nullptr;          // the open one, and what came of its text or arguments
  std::string text_;
  std::string events_;      // that are not written yet
  Json timings_ = nullptr;  // those so far, while events tell what came
  std::int64_t n_events_ = 0;
};

}  // namespace

std::unique_ptr<ReplyShape> make_responses_shape(ReplyHead head, const Json& request, RenamedTools renamed) {
  return std::make_unique<ResponsesShape>(std::move(head), request, std::move(renamed));
}

}  // namespace ebb
