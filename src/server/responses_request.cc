#include "server/responses_request.h"

#include <array>
#include <span>
#include <utility>

#include "server/sampling_fields.h"

namespace ebb {
namespace {

// What means the same in both.
// What means the same in both, besides kSamplingFields.
constexpr std::array kShared = {"model",
                                "stop",
                                "stream",
                                "user",
                                "metadata",
                                "parallel_tool_calls",
                                "tool_choice",
                                "chat_template_kwargs",
                                "reasoning_format",
                                "reasoning_budget_tokens",
                                "prompt_cache_key",
                                "cache_prompt",
                                "sse_ping_interval",
                                "grammar",
                                "kv_reuse",
                                "kv_reuse_recompute"};

void copy_fields(const Json& from, std::span<const char* const> names, Json& to) {
  for (const char* name : names) {
    if (from.contains(name)) to[name] = from[name];
  }
}

template <class... Args>
Status wrong(fmt::format_string<Args...> format, Args&&... args) {
  return {Code::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...)};
}

// A string, or parts of text whatever their type is called.
Result<std::string> read_text(const Json& content, std::size_t index) {
  if (content.is_null()) return std::string();
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return wrong("Field 'input[{}]': its content must be a string or an array of parts", index);
  std::string text;
  for (const Json& part : content) {
    if (!part.is_object() || !part.contains("text") || !part["text"].is_string()) {
      return wrong("Field 'input[{}]': this model reads parts of text only", index);
    }
    if (!text.empty()) text += '\n';
    text += part["text"].get<std::string>();
  }
  return text;
}

// Items become messages. Thinking, text and calls that follow each other are one message of the assistant.
class Messages {
 public:
  Status add(const Json& item, std::size_t index) {
    if (!item.is_object()) return wrong("Field 'input[{}]': must be an object", index);
    const std::string type = item.contains("type") ? text_member(item, "type") : "message";
    if (type == "message") return add_message(item, index);
    if (type == "function_call") return add_call(item, index);
    if (type == "function_call_output") return add_output(item, index);
    if (type == "reasoning") return add_reasoning(item, index);
    return wrong("Field 'input[{}].type': must be message, function_call, function_call_output or reasoning", index);
  }
  void add_plain(std::string_view role, const Json& text) { list_.push_back({{"role", role}, {"content", text}}); }
  Json take() { return std::move(list_); }

 private:
  Status add_message(const Json& item, std::size_t index) {
    const std::string role = text_member(item, "role");
    EBB_ASSIGN_OR_RETURN(const std::string text, read_text(item.value("content", Json()), index));
    if (role != "assistant") {
      add_plain(role, text);
      return {};
    }
    Json& message = assistant(!text.empty());
    if (!text.empty()) message["content"] = text;
    return {};
  }

  Status add_call(const Json& item, std::size_t index) {
    if (text_member(item, "name").empty()) return wrong("Field 'input[{}].name': must be a string", index);
    const Json function = {{"name", item["name"]}, {"arguments", text_member(item, "arguments")}};
    assistant(false)["tool_calls"].push_back(
        {{"id", text_member(item, "call_id")}, {"type", "function"}, {"function", function}});
    return {};
  }

  Status add_output(const Json& item, std::size_t index) {
    EBB_ASSIGN_OR_RETURN(const std::string text, read_text(item.value("output", Json()), index));
    list_.push_back({{"role", "tool"}, {"tool_call_id", text_member(item, "call_id")}, {"content", text}});
    return {};
  }

  Status add_reasoning(const Json& item, std::size_t index) {
    EBB_ASSIGN_OR_RETURN(const std::string text, read_text(item.value("content", Json()), index));
    if (!text.empty()) assistant(true)["reasoning_content"] = text;
    return {};
  }

  // The assistant's message at the end, if it may go on: text comes once, and before calls.
  Json& assistant(bool is_new_text) {
    const bool goes_on = !list_.empty() && list_.back()["role"] == "assistant" &&
                         (!is_new_text || (!list_.back().contains("tool_calls") && list_.back()["content"] == ""));
    if (!goes_on) list_.push_back({{"role", "assistant"}, {"content", ""}});
    return list_.back();
  }

  Json list_ = Json::array();
};

Status read_tools(const Json& tools, ResponsesRequest& request) {
  if (!tools.is_array()) return wrong("Field 'tools': must be an array");
  Json list = Json::array();
  for (const Json& tool : tools) {
    if (!tool.is_object()) return wrong("Field 'tools': must be an array of objects");
    if (text_member(tool, "type") != "function") {
      request.warnings.push_back(
          fmt::format("tool left out: its type '{:.40}' is not function", text_member(tool, "type")));
      continue;
    }
    Json function = tool;
    function.erase("type");
    list.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  request.chat["tools"] = std::move(list);
  return {};
}

}  // namespace

Result<ResponsesRequest> read_responses_request(const Json& body) {
  Fields fields(body);
  EBB_RETURN_IF_ERROR(fields.status());
  for (const char* name : {"previous_response_id", "conversation"}) {
    if (fields.find(name) != nullptr) return wrong("Field '{}': nothing is kept; send the whole input", name);
  }
  if (fields.boolean("background", false)) {
    return wrong("Field 'background': responses are not kept; leave it out, and read the answer as it comes");
  }
  ResponsesRequest request;
  Messages messages;
  if (const std::string text = fields.text("instructions"); !text.empty()) messages.add_plain("system", text);
  EBB_RETURN_IF_ERROR(fields.status());
  const Json* input = fields.find("input");
  if (input == nullptr || !(input->is_string() || input->is_array()) || input->empty()) {
    return wrong("Field 'input': must be a string or an array of items, at least one");
  }
  if (input->is_string()) messages.add_plain("user", *input);
  for (std::size_t i = 0; input->is_array() && i < input->size(); ++i) {
    EBB_RETURN_IF_ERROR(messages.add((*input)[i], i));
  }
  request.chat["messages"] = messages.take();
  copy_fields(body, kShared, request.chat);
  copy_fields(body, kSamplingFields, request.chat);
  if (const Json* n = fields.find("max_output_tokens"); n != nullptr) request.chat["max_tokens"] = *n;
  if (const Json* reasoning = fields.find("reasoning"); reasoning != nullptr) {
    if (!reasoning->is_object()) return wrong("Field 'reasoning': must be an object");
    request.chat["reasoning_effort"] = reasoning->value("effort", Json());
  }
  if (const Json* text = fields.find("text"); text != nullptr) {
    if (!text->is_object()) return wrong("Field 'text': must be an object");
    request.chat["response_format"] = text->value("format", Json());
  }
  if (const Json* tools = fields.find("tools"); tools != nullptr) EBB_RETURN_IF_ERROR(read_tools(*tools, request));
  return request;
}

}  // namespace ebb
