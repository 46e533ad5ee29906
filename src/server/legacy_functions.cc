#include "server/legacy_functions.h"

#include <utility>

namespace ebb {
namespace {

// Nine letters and digits fit every template.
std::string call_id(std::size_t place) { return fmt::format("fn{:07}", place % 10'000'000); }

bool is_given(const Json& object, const char* name) { return object.contains(name) && !object[name].is_null(); }

Json read_functions(JsonFields& fields) {
  if (fields.find("tools") != nullptr) fields.refuse("functions", "cannot be given together with 'tools'");
  Json tools = Json::array();
  for (const JsonFields& function : fields.objects("functions")) {
    tools.push_back({{"type", "function"}, {"function", function.json()}});
  }
  return tools;
}

Json read_function_call(JsonFields& fields) {
  if (fields.find("tool_choice") != nullptr) {
    fields.refuse("function_call", "cannot be given together with 'tool_choice'");
  }
  const Json& call = *fields.find("function_call");
  if (call == "auto" || call == "none") return call;
  if (const std::string name = text_member(call, "name"); !name.empty()) {
    return {{"type", "function"}, {"function", {{"name", name}}}};
  }
  fields.refuse("function_call", R"(must be "auto", "none" or {"name": ...})");
  return nullptr;
}

// A result answers the last call before it.
void say_calls(Json& messages) {
  std::string last_id;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    Json& message = messages[i];
    if (!message.is_object()) continue;
    if (is_given(message, "function_call") && !is_given(message, "tool_calls")) {
      last_id = call_id(i);
      message["tool_calls"] =
          Json::array({{{"id", last_id}, {"type", "function"}, {"function", message["function_call"]}}});
    }
    message.erase("function_call");
    if (text_member(message, "role") != "function") continue;
    message["role"] = "tool";
    if (!last_id.empty()) message["tool_call_id"] = last_id;
  }
}

}  // namespace

bool has_legacy_functions(const Json& body) { return is_given(body, "functions"); }

Status say_functions_as_tools(Json& body) {
  JsonFields fields(body);
  const bool has_functions = has_legacy_functions(body);
  Json tools = has_functions ? read_functions(fields) : nullptr;
  Json choice = fields.find("function_call") != nullptr ? read_function_call(fields) : nullptr;
  EBB_RETURN_IF_ERROR(fields.status());
  if (has_functions) {
    body["tools"] = std::move(tools);
    body["parallel_tool_calls"] = false;
  }
  if (!choice.is_null()) body["tool_choice"] = std::move(choice);
  if (body.contains("messages") && body["messages"].is_array()) say_calls(body["messages"]);
  return {};
}

}  // namespace ebb
