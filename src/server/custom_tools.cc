#include "server/custom_tools.h"

#include <utility>

#include "json/parse_json.h"
#include "server/api_error.h"

namespace ebb {
namespace {

bool is_custom(const Json& json) {
  return text_member(json, "type") == "custom" && json.contains("custom") && json["custom"].is_object();
}

// A regular expression that stands for the whole text, whether or not it says so.
std::string whole(const std::string& pattern) {
  return pattern.starts_with('^') && pattern.ends_with('$') ? pattern : "^(?:" + pattern + ")$";
}

// {"type": "grammar", "syntax", "definition"}, as Responses has it; in a chat the two stand in `grammar`.
Json input_schema(const std::string& name, const Json& format, std::vector<std::string>& warnings) {
  Json schema = {{"type", "string"}};
  if (text_member(format, "type") != "grammar") return schema;
  const Json& grammar = format.contains("grammar") ? format["grammar"] : format;
  if (text_member(grammar, "syntax") == "regex") {
    schema["pattern"] = whole(text_member(grammar, "definition"));
  } else {
    warnings.push_back(fmt::format("format of the custom tool '{:.60}': grammars in '{:.20}' are not enforced", name,
                                   text_member(grammar, "syntax")));
  }
  return schema;
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

Json custom_as_function(Json custom, std::vector<std::string>& warnings) {
  const Json format = custom.value("format", Json());
  custom.erase("format");
  custom["parameters"] = {{"type", "object"},
                          {"properties", {{kCustomInput, input_schema(text_member(custom, "name"), format, warnings)}}},
                          {"required", {kCustomInput}}};
  return custom;
}

std::string custom_input(const std::string& arguments) {
  const Result<Json> parsed = parse_json(arguments);
  return parsed.ok() ? text_member(*parsed, kCustomInput) : std::string();
}

Result<CustomTools> say_custom_tools_as_functions(Json& body) {
  CustomTools tools;
  JsonFields fields(body);
  for (JsonFields& tool : fields.objects("tools")) {
    if (!is_custom(tool.json())) continue;
    if (std::optional<JsonFields> custom = tool.object("custom")) tools.names.insert(custom->needed_text("name"));
  }
  EBB_RETURN_IF_ERROR(fields.status());
  if (body.contains("messages") && body["messages"].is_array()) {
    for (Json& message : body["messages"]) say_calls(message);
  }
  if (tools.names.empty()) return tools;
  for (Json& tool : body["tools"]) {
    if (!is_custom(tool)) continue;
    tool = {{"type", "function"}, {"function", custom_as_function(tool["custom"], tools.warnings)}};
  }
  if (body.contains("tool_choice") && is_custom(body["tool_choice"])) {
    body["tool_choice"] = {{"type", "function"}, {"function", body["tool_choice"]["custom"]}};
  }
  return tools;
}

}  // namespace ebb
