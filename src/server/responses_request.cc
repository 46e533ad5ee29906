#include "server/responses_request.h"

#include <algorithm>
#include <array>
#include <utility>

#include "server/api_error.h"
#include "server/custom_tools.h"
#include "server/passed_fields.h"

namespace ebb {
namespace {

// What means the same in both, besides what pass_fields() takes.
constexpr std::array kShared = {"stop", "user", "parallel_tool_calls", "tool_choice", "reasoning_budget_tokens"};

// A string, or parts of text whatever their type is called.
std::string read_text(JsonFields& item, std::string_view name) {
  const Json* content = item.find(name);
  if (content == nullptr || content->is_string()) return item.text(name);
  if (!content->is_array()) {
    item.refuse_type(name, "a string or an array of parts");
    return {};
  }
  std::string text;
  for (JsonFields& part : item.objects(name)) {
    if (part.find("text") == nullptr) part.refuse("text", "is missing; this model reads parts of text only");
    if (!text.empty()) text += '\n';
    text += part.text("text");
  }
  return text;
}

// Items become messages. Thinking, text and calls that follow each other are one message of the assistant.
class Messages {
 public:
  void add(JsonFields& item) {
    const std::string type = item.text("type", "message");
    if (type == "message") return add_message(item);
    if (type == "function_call") return add_call(item);
    if (type == "function_call_output") return add_output(item);
    if (type == "reasoning") return add_reasoning(item);
    if (type == "custom_tool_call") return add_custom_call(item);
    if (type == "custom_tool_call_output") return add_output(item);
    // What another server's tools did; what it said of them stands in messages.
    warnings_.push_back(fmt::format("item of the input left out: type '{:.40}' is not known here", type));
  }
  void add_plain(std::string_view role, std::string text) {
    list_.push_back({{"role", role}, {"content", std::move(text)}});
  }
  Json take() { return std::move(list_); }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  void add_message(JsonFields& item) {
    const std::string role = item.text("role");
    std::string text = read_text(item, "content");
    if (role != "assistant") return add_plain(role, std::move(text));
    Json& message = assistant(!text.empty());
    if (!text.empty()) message["content"] = std::move(text);
  }

  void add_call(JsonFields& item) {
    const Json function = {{"name", item.needed_text("name")}, {"arguments", item.text("arguments")}};
    assistant(false)["tool_calls"].push_back(
        {{"id", item.text("call_id")}, {"type", "function"}, {"function", function}});
  }

  // Its text is the one argument of the function that stands for it.
  void add_custom_call(JsonFields& item) {
    const Json function = {{"name", item.needed_text("name")},
                           {"arguments", json_text({{kCustomInput, item.text("input")}})}};
    assistant(false)["tool_calls"].push_back(
        {{"id", item.text("call_id")}, {"type", "function"}, {"function", function}});
  }

  void add_output(JsonFields& item) {
    list_.push_back({{"role", "tool"}, {"tool_call_id", item.text("call_id")}, {"content", read_text(item, "output")}});
  }

  void add_reasoning(JsonFields& item) {
    if (std::string text = read_text(item, "content"); !text.empty()) {
      assistant(true)["reasoning_content"] = std::move(text);
    }
  }

  // The assistant's message at the end, if it may go on: text comes once, and before calls.
  Json& assistant(bool is_new_text) {
    const bool goes_on = !list_.empty() && list_.back()["role"] == "assistant" &&
                         (!is_new_text || (!list_.back().contains("tool_calls") && list_.back()["content"] == ""));
    if (!goes_on) list_.push_back({{"role", "assistant"}, {"content", ""}});
    return list_.back();
  }

  Json list_ = Json::array();
  std::vector<std::string> warnings_;
};

Json read_messages(JsonFields& body, std::vector<std::string>& warnings) {
  Messages messages;
  if (std::string text = body.text("instructions"); !text.empty()) messages.add_plain("system", std::move(text));
  const Json* input = body.find("input");
  if (input == nullptr || !(input->is_string() || input->is_array()) || input->empty()) {
    body.refuse("input", "must be a string or an array of items, at least one");
  } else if (input->is_string()) {
    messages.add_plain("user", body.text("input"));
  } else {
    for (JsonFields& item : body.objects("input")) {
      messages.add(item);
      if (!body.status().ok()) break;
    }
  }
  warnings.insert(warnings.end(), messages.warnings().begin(), messages.warnings().end());
  return messages.take();
}

// A function, or what is said as one; of a namespace, as its own name where that is free.
void add_tool(JsonFields& tool, const std::string& space, Json& list, ResponsesRequest& request) {
  const std::string type = tool.text("type");
  if (type != "function" && type != "custom") {
    request.warnings.push_back(fmt::format("tool left out: its type '{:.40}' is not function", type));
    return;
  }
  Json function = tool.json();
  function.erase("type");
  const std::string name = tool.needed_text("name");
  const auto is_taken = [&](const Json& one) { return one["function"]["name"] == name; };
  const std::string called = !space.empty() && std::ranges::any_of(list, is_taken) ? space + "__" + name : name;
  function["name"] = called;
  if (type == "custom") function = custom_as_function(std::move(function), request.warnings);
  if (type == "custom" || !space.empty()) {
    request.renamed[called] = {.name = name, .space = space, .is_custom = type == "custom"};
  }
  list.push_back({{"type", "function"}, {"function", std::move(function)}});
}

void read_tools(JsonFields& body, ResponsesRequest& request) {
  if (body.find("tools") == nullptr) return;
  Json list = Json::array();
  for (JsonFields& tool : body.objects("tools")) {
    if (tool.text("type") != "namespace") {
      add_tool(tool, "", list, request);
      continue;
    }
    const std::string space = tool.needed_text("name");
    for (JsonFields& inside : tool.objects("tools")) add_tool(inside, space, list, request);
  }
  request.chat["tools"] = std::move(list);
}

// What a server would need that keeps answers.
void refuse_kept(JsonFields& body) {
  for (const std::string_view name : {"previous_response_id", "conversation"}) {
    if (body.find(name) != nullptr) body.refuse(name, "nothing is kept; send the whole input");
  }
  if (body.boolean("background", false)) {
    body.refuse("background", "responses are not kept; leave it out, and read the answer as it comes");
  }
}

// What could be done without, and is not done, is told.
void warn_of_left_out(JsonFields& body, std::vector<std::string>& warnings) {
  if (body.text("truncation", "disabled") != "disabled") {
    warnings.push_back("truncation: has no effect, a session goes on past what is in the cache");
  }
  if (body.find("max_tool_calls") != nullptr)
    warnings.push_back("max_tool_calls: has no effect, tools run at the client");
  if (body.find("prompt") != nullptr) warnings.push_back("prompt: has no effect, no templates of prompts are kept");
}

// A member of an object inside the body that chat has at the top.
void lift(JsonFields& body, std::string_view holder, std::string_view member, const char* chat_name, Json& chat) {
  std::optional<JsonFields> inside = body.object(holder);
  if (!inside) return;
  if (const Json* value = inside->find(member); value != nullptr) chat[chat_name] = *value;
}

}  // namespace

Result<ResponsesRequest> read_responses_request(const Json& body) {
  JsonFields fields(body);
  EBB_RETURN_IF_ERROR(fields.status());
  ResponsesRequest request;
  refuse_kept(fields);
  request.chat["messages"] = read_messages(fields, request.warnings);
  pass_fields(body, request.chat);
  copy_fields(body, kShared, request.chat);
  if (const Json* n = fields.find("max_output_tokens"); n != nullptr) request.chat["max_tokens"] = *n;
  lift(fields, "reasoning", "effort", "reasoning_effort", request.chat);
  lift(fields, "text", "format", "response_format", request.chat);
  lift(fields, "text", "verbosity", "verbosity", request.chat);
  warn_of_left_out(fields, request.warnings);
  read_tools(fields, request);
  EBB_RETURN_IF_ERROR(fields.status());
  return request;
}

}  // namespace ebb
