#include "server/tool_fields.h"

#include "grammar/json_schema_grammar.h"

namespace ebb {
namespace {

constexpr std::size_t kMostTools = 512;
constexpr std::size_t kMostNameBytes = 128;

void check_strict(JsonFields& function) {
  const Json* parameters = function.find("parameters");
  if (!function.boolean("strict", false) || parameters == nullptr) return;
  const Result<JsonGrammar> grammar = json_schema_grammar(*parameters);
  if (!grammar.ok()) {
    function.refuse("parameters", grammar.status().message());
  } else if (const std::string* const refused = grammar->refused_if_strict(); refused != nullptr) {
    function.refuse("strict", fmt::format("the schema asks for '{}', which is not enforced", *refused));
  }
}

void read_tool(JsonFields& function, std::vector<Tool>& tools) {
  std::string name = function.needed_text("name");
  if (name.empty() || name.size() > kMostNameBytes) {
    function.refuse("name", fmt::format("must have 1 to {} bytes", kMostNameBytes));
  } else if (find_tool(tools, name) != nullptr) {
    function.refuse("name", fmt::format("'{}' is declared twice", name));
  }
  check_strict(function);
  const Json* parameters = function.find("parameters");
  tools.push_back({.name = std::move(name),
                   .parameters = parameters == nullptr ? Json() : *parameters,
                   .is_strict = function.boolean("strict", false)});
}

std::vector<Tool> read_tools(JsonFields& body) {
  std::vector<Tool> read;
  std::vector<JsonFields> tools = body.objects("tools");
  if (tools.size() > kMostTools) {
    body.refuse("tools", fmt::format("{} tools; at most {} are taken", tools.size(), kMostTools));
    return read;
  }
  for (JsonFields& tool : tools) {
    if (std::optional<JsonFields> function = tool.needed_object("function")) read_tool(*function, read);
    if (!body.status().ok()) break;
  }
  return read;
}

// The name in {"type": "function", "function": {"name": …}}; Responses has it at the top.
std::string chosen_name(JsonFields& body) {
  if (!body.find("tool_choice")->is_object()) return {};
  std::optional<JsonFields> choice = body.object("tool_choice");
  std::optional<JsonFields> function = choice->object("function");
  return (function ? *function : *choice).text("name");
}

// {"type": "allowed_tools", "allowed_tools": {"mode", "tools"}}; Responses has mode and tools at the top. All tools stay in the prompt, so that it
// begins as the one before; no others are called.
void read_allowed(JsonFields& choice, ToolFields& fields) {
  std::optional<JsonFields> inside = choice.object("allowed_tools");
  JsonFields& holder = inside ? *inside : choice;
  const std::string mode = holder.text("mode", "auto");
  if (mode != "auto" && mode != "required") holder.refuse("mode", "must be \"auto\" or \"required\"");
  fields.use = mode == "required" ? ToolUse::kRequired : ToolUse::kAuto;
  std::vector<Tool> allowed;
  for (JsonFields& tool : holder.objects("tools")) {
    std::optional<JsonFields> function = tool.object("function");
    const std::string name = (function ? *function : tool).needed_text("name");
    if (const Tool* const found = find_tool(fields.tools, name); found != nullptr) {
      allowed.push_back(*found);
    } else {
      tool.refuse("name", fmt::format("'{:.40}' is not among the {} tools", name, fields.tools.size()));
    }
  }
  if (allowed.empty()) holder.refuse("tools", "must name at least one of the tools");
  fields.tools = std::move(allowed);
}

void read_choice(JsonFields& body, ToolFields& fields) {
  const Json* choice = body.find("tool_choice");
  if (choice == nullptr) return;
  if (text_member(*choice, "type") == "allowed_tools") {
    if (std::optional<JsonFields> allowed = body.object("tool_choice")) read_allowed(*allowed, fields);
    return;
  }
  if (*choice == "auto") {
    fields.use = ToolUse::kAuto;
  } else if (*choice == "none") {
    fields.use = ToolUse::kNone;
  } else if (*choice == "required") {
    fields.use = ToolUse::kRequired;
  } else if (const std::string name = chosen_name(body); name.empty()) {
    body.refuse("tool_choice",
                "must be \"auto\", \"none\", \"required\" or {\"type\": \"function\", \"function\": {\"name\": ...}}");
  } else {
    fields.only = name;
    fields.use = ToolUse::kRequired;
    if (find_tool(fields.tools, name) != nullptr) return;
    body.refuse("tool_choice", fmt::format("names a function that is not among the {} tools", fields.tools.size()));
  }
}

}  // namespace

Result<ToolFields> read_tool_fields(const Json& body) {
  JsonFields given(body);
  ToolFields fields;
  fields.parallel = given.boolean("parallel_tool_calls", true);
  fields.tools = read_tools(given);
  if (!fields.tools.empty()) fields.use = ToolUse::kAuto;
  read_choice(given, fields);
  if (fields.use == ToolUse::kRequired && fields.tools.empty()) {
    given.refuse("tool_choice", "asks for a call, and 'tools' is empty");
  }
  EBB_RETURN_IF_ERROR(given.status());
  if (fields.tools.empty()) fields.use = ToolUse::kNone;
  return fields;
}

}  // namespace ebb
