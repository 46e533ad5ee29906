#include "text/chat_request.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "text/parse_json.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant", "tool"};

template <class... Args>
Status wrong(fmt::format_string<Args...> format, Args&&... args) {
  return {Code::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...)};
}

// The member, or null: what is absent and what is null are the same.
const Json& member(const Json& object, const char* name) {
  static const Json kNull = nullptr;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

Result<bool> read_bool(const Json& body, const char* name, bool otherwise) {
  const Json& value = member(body, name);
  if (value.is_null()) return otherwise;
  if (!value.is_boolean()) return wrong("field '{}' must be a boolean, not {}", name, value.type_name());
  return value.get<bool>();
}

// String, null or parts; parts are joined by newlines.
Result<std::string> read_content(const Json& content, std::size_t index) {
  if (content.is_null()) return std::string();
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    return wrong("field 'messages[{}].content' must be a string, null or an array of parts, not {}", index,
                 content.type_name());
  }
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const Json& part = content[i];
    if (!part.is_object() || !member(part, "type").is_string()) {
      return wrong("field 'messages[{}].content[{}]' must be an object with a 'type'", index, i);
    }
    const auto type = member(part, "type").get<std::string>();
    if (type != "text") {
      return wrong("field 'messages[{}].content[{}]' has type '{}'; this model reads text only", index, i, type);
    }
    if (!member(part, "text").is_string())
      return wrong("field 'messages[{}].content[{}].text' must be a string", index, i);
    if (i > 0) text += '\n';
    text += member(part, "text").get<std::string>();
  }
  return text;
}

// Arguments as an object where their text is one that parse_json takes; otherwise as they came.
Result<Json> read_tool_calls(const Json& given, std::size_t index) {
  if (!given.is_array())
    return wrong("field 'messages[{}].tool_calls' must be an array, not {}", index, given.type_name());
  Json calls = given;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Json& call = calls[i];
    if (!call.is_object() || !member(call, "function").is_object() || !member(call["function"], "name").is_string()) {
      return wrong("field 'messages[{}].tool_calls[{}]' must be an object with a 'function' that has a 'name'", index,
                   i);
    }
    Json& function = call["function"];
    const Json& arguments = member(function, "arguments");
    if (arguments.is_null()) {
      function["arguments"] = Json::object();
    } else if (arguments.is_string()) {
      const auto text = arguments.get<std::string>();
      Result<Json> parsed = parse_json(text.empty() ? "{}" : text);
      if (parsed.ok() && parsed->is_object()) function["arguments"] = *std::move(parsed);
    } else if (!arguments.is_object()) {
      return wrong("field 'messages[{}].tool_calls[{}].function.arguments' must be a JSON text or an object", index, i);
    }
  }
  return calls;
}

Result<Json> read_message(const Json& given, std::size_t index) {
  if (!given.is_object()) return wrong("field 'messages[{}]' must be an object, not {}", index, given.type_name());
  const Json& role = member(given, "role");
  if (!role.is_string() || std::ranges::find(kRoles, role.get<std::string>()) == kRoles.end()) {
    return wrong("field 'messages[{}].role' must be system, developer, user, assistant or tool", index);
  }
  Json message = Json::object();
  message["role"] = role == "developer" ? Json("system") : role;
  const bool may_be_empty = role == "assistant" && !member(given, "tool_calls").is_null();
  if (member(given, "content").is_null() && !may_be_empty) {
    return wrong("field 'messages[{}].content' is missing; only an assistant's message with tool_calls needs none",
                 index);
  }
  EBB_ASSIGN_OR_RETURN(message["content"], read_content(member(given, "content"), index));
  for (const char* name : {"reasoning_content", "name", "tool_call_id"}) {
    const Json& value = member(given, name);
    if (value.is_null()) continue;
    if (!value.is_string())
      return wrong("field 'messages[{}].{}' must be a string, not {}", index, name, value.type_name());
    message[name] = value;
  }
  if (const Json& calls = member(given, "tool_calls"); !calls.is_null() && !calls.empty()) {
    EBB_ASSIGN_OR_RETURN(message["tool_calls"], read_tool_calls(calls, index));
  }
  return message;
}

Status read_tools(const Json& body, ChatRequest& request) {
  const Json& tools = member(body, "tools");
  if (tools.is_null() || (tools.is_array() && tools.empty())) return {};
  if (!tools.is_array()) return wrong("field 'tools' must be an array, not {}", tools.type_name());
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const Json& tool = tools[i];
    if (!tool.is_object() || member(tool, "type") != "function" || !member(tool, "function").is_object()) {
      return wrong("field 'tools[{}]' must be {{\"type\": \"function\", \"function\": {{...}}}}", i);
    }
    if (!member(tool["function"], "name").is_string())
      return wrong("field 'tools[{}].function.name' must be a string", i);
  }
  request.tools = tools;
  return {};
}

Status read_arguments(const Json& body, ChatRequest& request) {
  const Json& effort = member(body, "reasoning_effort");
  if (effort.is_string() && effort == "none") request.arguments["enable_thinking"] = false;
  if (effort.is_string() && effort != "none") request.arguments["reasoning_effort"] = effort;
  const Json& given = member(body, "chat_template_kwargs");
  if (given.is_null()) return {};
  if (!given.is_object()) return wrong("field 'chat_template_kwargs' must be an object, not {}", given.type_name());
  if (const Json& thinking = member(given, "enable_thinking"); !thinking.is_null() && !thinking.is_boolean()) {
    return wrong("field 'chat_template_kwargs.enable_thinking' must be a boolean, not {}", thinking.type_name());
  }
  for (const auto& [name, value] : given.items()) request.arguments[name] = value;
  return {};
}

// Whether the prompt goes on with the last message, or begins a new one.
Status read_ending(const Json& body, ChatRequest& request) {
  EBB_ASSIGN_OR_RETURN(const bool continues, read_bool(body, "continue_final_message", false));
  EBB_ASSIGN_OR_RETURN(request.add_generation_prompt, read_bool(body, "add_generation_prompt", true));
  const bool asks_for_prompt = request.add_generation_prompt && !member(body, "add_generation_prompt").is_null();
  if (continues && asks_for_prompt) {
    return wrong("fields 'continue_final_message' and 'add_generation_prompt' cannot both be true");
  }
  const std::size_t n = request.messages.size();
  const auto is_reply = [&](std::size_t i) {
    return request.messages[i]["role"] == "assistant" && !request.messages[i].contains("tool_calls");
  };
  const bool ends_with_reply = is_reply(n - 1);
  if (continues && !ends_with_reply) {
    return wrong("field 'continue_final_message' needs an assistant's message without tool_calls at the end");
  }
  const bool by_default =
      member(body, "continue_final_message").is_null() && member(body, "add_generation_prompt").is_null();
  request.continues_last_message = ends_with_reply && (continues || by_default);
  if (request.continues_last_message && n > 1 && is_reply(n - 2)) {
    return wrong("field 'messages' ends with two messages of the assistant; join them or end with another role");
  }
  return {};
}

}  // namespace

Result<ChatRequest> read_chat_request(const Json& body) {
  if (!body.is_object()) return wrong("a chat request must be a JSON object, not {}", body.type_name());
  const Json& messages = member(body, "messages");
  if (!messages.is_array() || messages.empty())
    return wrong("field 'messages' must be an array with at least one message");
  ChatRequest request;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    EBB_ASSIGN_OR_RETURN(Json message, read_message(messages[i], i));
    request.messages.push_back(std::move(message));
  }
  EBB_RETURN_IF_ERROR(read_tools(body, request));
  EBB_RETURN_IF_ERROR(read_arguments(body, request));
  EBB_RETURN_IF_ERROR(read_ending(body, request));
  return request;
}

}  // namespace ebb
