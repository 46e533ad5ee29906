#include "server/custom_tools.h"

#include <utility>

#include "json/parse_json.h"
#include "server/api_error.h"

namespace ebb {
namespace {

bool is_custom(const Json& json) {
  return text_member(json, "type") == "custom" && json.contains("custom") && json["custom"].is_object();
}

// Its name, and a description where there is one; of `format` nothing is enforced.
Json as_function(const Json& tool) {
  Json function = tool["custom"];
  function.erase("format");
  function["parameters"] = custom_parameters();
  return {{"type", "function"}, {"function", std::move(function)}};
}

void say_calls(Json& message) {
  if (!message.is_object() || !message.contains("tool_calls") || !message["tool_calls"].is_array()) return;
  for (Json& call : message["tool_calls"]) {
    if (!is_custom(call)) continue;
    call["type"] = "function";
    call["function"] = {{"name", text_member(call["custom"], "name")},
                        {"arguments", json_text({{kCustomInput, text_member(call["custom"], "input")}})}};
    call.erase("custom");
  }
}

}  // namespace

Json custom_parameters() {
  return {{"type", "object"}, {"properties", {{kCustomInput, {{"type", "string"}}}}}, {"required", {kCustomInput}}};
}

std::string custom_input(const std::string& arguments) {
  const Result<Json> parsed = parse_json(arguments);
  return parsed.ok() ? text_member(*parsed, kCustomInput) : std::string();
}

Result<std::set<std::string>> say_custom_tools_as_functions(Json& body) {
  std::set<std::string> names;
  JsonFields fields(body);
  for (JsonFields& tool : fields.objects("tools")) {
    if (!is_custom(tool.json())) continue;
    if (std::optional<JsonFields> custom = tool.object("custom")) names.insert(custom->needed_text("name"));
  }
  EBB_RETURN_IF_ERROR(fields.status());
  if (body.contains("messages") && body["messages"].is_array()) {
    for (Json& message : body["messages"]) say_calls(message);
  }
  if (names.empty()) return names;
  for (Json& tool : body["tools"]) {
    if (is_custom(tool)) tool = as_function(tool);
  }
  if (body.contains("tool_choice") && is_custom(body["tool_choice"])) {
    body["tool_choice"] = {{"type", "function"}, {"function", body["tool_choice"]["custom"]}};
  }
  return names;
}

}  // namespace ebb
