#include "server/tool_fields.h"

#include "text/json_schema_grammar.h"

namespace ebb {
namespace {

constexpr std::size_t kMostTools = 512;
constexpr std::size_t kMostNameBytes = 128;

Status check_strict(const Json& function, std::size_t index) {
  if (!function.contains("strict") || function["strict"] != true || !function.contains("parameters")) return {};
  const Result<JsonGrammar> grammar = json_schema_grammar(function["parameters"]);
  EBB_RETURN_IF_ERROR(grammar.status());
  if (grammar->unsupported.empty()) return {};
  return error(Code::kInvalidArgument,
               "Field 'tools[{}].function': is strict, and its schema asks for '{}', which is "
               "not enforced",
               index, grammar->unsupported.front());
}

Result<std::vector<Tool>> read_tools(const Json& tools) {
  if (tools.size() > kMostTools) {
    return error(Code::kInvalidArgument, "Field 'tools': {} tools; at most {} are taken", tools.size(), kMostTools);
  }
  std::vector<Tool> read;
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const Json& function = tools[i]["function"];
    auto name = function["name"].get<std::string>();
    if (name.empty() || name.size() > kMostNameBytes) {
      return error(Code::kInvalidArgument, "Field 'tools[{}].function.name': must have 1 to {} bytes", i,
                   kMostNameBytes);
    }
    if (find_tool(read, name) != nullptr) {
      return error(Code::kInvalidArgument, "Field 'tools[{}].function.name': '{}' is declared twice", i, name);
    }
    EBB_RETURN_IF_ERROR(check_strict(function, i));
    read.push_back({.name = std::move(name), .parameters = function.value("parameters", Json())});
  }
  return read;
}

// "auto", "none", "required" or {"type": "function", "function": {"name": …}}; Responses has the name at the top.
Status read_choice(const Json& choice, ToolFields& fields) {
  if (choice == "auto") fields.use = ToolUse::kAuto;
  if (choice == "none") fields.use = ToolUse::kNone;
  if (choice == "required") fields.use = ToolUse::kRequired;
  if (choice == "auto" || choice == "none" || choice == "required") return {};
  const Json& holder = choice.is_object() && choice.contains("function") ? choice["function"] : choice;
  if (!holder.is_object() || !holder.contains("name") || !holder["name"].is_string()) {
    return error(Code::kInvalidArgument,
                 "Field 'tool_choice': must be \"auto\", \"none\", \"required\" or "
                 "{{\"type\": \"function\", \"function\": {{\"name\": ...}}}}");
  }
  fields.only = holder["name"].get<std::string>();
  fields.use = ToolUse::kRequired;
  if (find_tool(fields.tools, *fields.only) != nullptr) return {};
  return error(Code::kInvalidArgument, "Field 'tool_choice': names a function that is not among the {} tools",
               fields.tools.size());
}

}  // namespace

Result<ToolFields> read_tool_fields(const Json& body) {
  Fields given(body);
  ToolFields fields;
  fields.parallel = given.boolean("parallel_tool_calls", true);
  EBB_RETURN_IF_ERROR(given.status());
  if (const Json* tools = given.find("tools"); tools != nullptr) {
    EBB_ASSIGN_OR_RETURN(fields.tools, read_tools(*tools));
  }
  if (!fields.tools.empty()) fields.use = ToolUse::kAuto;
  if (const Json* choice = given.find("tool_choice"); choice != nullptr) {
    EBB_RETURN_IF_ERROR(read_choice(*choice, fields));
  }
  if (fields.use == ToolUse::kRequired && fields.tools.empty()) {
    return error(Code::kInvalidArgument, "Field 'tool_choice': asks for a call, and 'tools' is empty");
  }
  if (fields.tools.empty()) fields.use = ToolUse::kNone;
  return fields;
}

}  // namespace ebb
