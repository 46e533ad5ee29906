#include "chat/chat_request.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "json/json_fields.h"

namespace ebb {
namespace {

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant", "tool"};

// String, null or parts; parts are joined by newlines.
std::string read_content(JsonFields& message) {
  const Json* content = message.find("content");
  if (content == nullptr || content->is_string()) return message.text("content");
  if (!content->is_array()) {
    message.refuse_type("content", "a string, null or an array of parts");
    return {};
  }
  std::string text;
  for (JsonFields& part : message.objects("content")) {
    const std::string type = part.needed_text("type");
    if (type != "text") part.refuse("type", fmt::format("is '{:.40}'; this model reads text only", type));
    if (&part.json() != &content->front()) text += '\n';
    text += part.needed_text("text");
  }
  return text;
}

// Arguments as an object where their text is one that parse_json takes; otherwise as they came.
Json read_arguments(JsonFields& function) {
  const Json* arguments = function.find("arguments");
  if (arguments == nullptr) return Json::object();
  if (arguments->is_string()) {
    const auto text = arguments->get<std::string>();
    Result<Json> parsed = parse_json(text.empty() ? "{}" : text);
    if (parsed.ok() && parsed->is_object()) return *std::move(parsed);
  } else if (!arguments->is_object()) {
    function.refuse_type("arguments", "a JSON text or an object");
  }
  return *arguments;
}

Json read_tool_calls(JsonFields& message) {
  Json calls = Json::array();
  for (JsonFields& call : message.objects("tool_calls")) {
    Json& read = calls.emplace_back(call.json());
    if (std::optional<JsonFields> function = call.needed_object("function")) {
      (void)function->needed_text("name");
      read["function"]["arguments"] = read_arguments(*function);
    }
  }
  return calls;
}

Json read_message(JsonFields& given) {
  const std::string role = given.text("role");
  if (std::ranges::find(kRoles, role) == kRoles.end()) {
    given.refuse("role", "must be system, developer, user, assistant or tool");
  }
  // A reply of which nothing came, as clients keep it, must not block all turns behind it.
  if (given.find("content") == nullptr && role != "assistant") {
    given.refuse("content", "is missing; only an assistant's message needs none");
  }
  Json message = Json::object();
  message["role"] = role == "developer" ? "system" : role;
  message["content"] = read_content(given);
  for (const char* name : {"name", "tool_call_id"}) {
    if (given.find(name) != nullptr) message[name] = given.text(name);
  }
  // Templates know thinking by one of these names.
  if (std::string thinking = given.text("reasoning_content", given.text("reasoning")); !thinking.empty()) {
    for (const char* name : {"reasoning_content", "reasoning", "thinking"}) message[name] = thinking;
  }
  if (Json calls = read_tool_calls(given); !calls.empty()) message["tool_calls"] = std::move(calls);
  return message;
}

void read_messages(JsonFields& fields, ChatRequest& request) {
  for (JsonFields& message : fields.objects("messages")) {
    request.messages.push_back(read_message(message));
    if (!fields.status().ok()) return;
  }
  if (request.messages.empty()) fields.refuse("messages", "must be an array with at least one message");
}

void read_tools(JsonFields& fields, ChatRequest& request) {
  std::vector<JsonFields> tools = fields.objects("tools");
  for (JsonFields& tool : tools) {
    if (tool.text("type") != "function") tool.refuse("type", "must be \"function\"");
    if (std::optional<JsonFields> function = tool.needed_object("function")) (void)function->needed_text("name");
  }
  if (!tools.empty()) request.tools = *fields.find("tools");
}

void read_template_arguments(JsonFields& fields, ChatRequest& request) {
  const std::string effort = fields.text("reasoning_effort");
  if (!effort.empty()) request.arguments["enable_thinking"] = effort != "none";
  if (!effort.empty() && effort != "none") request.arguments["reasoning_effort"] = effort;
  std::optional<JsonFields> given = fields.object("chat_template_kwargs");
  if (!given) return;
  (void)given->boolean("enable_thinking", true);
  for (const auto& [name, value] : given->json().items()) request.arguments[name] = value;
}

// Whether the prompt goes on with the last message, or begins a new one.
void read_ending(JsonFields& fields, ChatRequest& request) {
  const bool continues = fields.boolean("continue_final_message", false);
  request.add_generation_prompt = fields.boolean("add_generation_prompt", true);
  const bool says_begins = fields.find("add_generation_prompt") != nullptr;
  if (continues && says_begins && request.add_generation_prompt) {
    fields.refuse("continue_final_message", "cannot be true together with 'add_generation_prompt'");
  }
  const std::size_t n = request.messages.size();
  const auto is_reply = [&](std::size_t i) {
    return request.messages[i]["role"] == "assistant" && !request.messages[i].contains("tool_calls");
  };
  const bool ends_with_reply = is_reply(n - 1);
  if (continues && !ends_with_reply) {
    fields.refuse("continue_final_message", "needs an assistant's message without tool_calls at the end");
  }
  const bool by_default = fields.find("continue_final_message") == nullptr && !says_begins;
  request.continues_last_message = ends_with_reply && (continues || by_default);
  if (request.continues_last_message && n > 1 && is_reply(n - 2)) {
    fields.refuse("messages", "ends with two messages of the assistant; join them or end with another role");
  }
}

}  // namespace

Result<ChatRequest> read_chat_request(const Json& body) {
  JsonFields fields(body);
  ChatRequest request;
  read_messages(fields, request);
  EBB_RETURN_IF_ERROR(fields.status());
  read_tools(fields, request);
  read_template_arguments(fields, request);
  read_ending(fields, request);
  EBB_RETURN_IF_ERROR(fields.status());
  return request;
}

}  // namespace ebb
