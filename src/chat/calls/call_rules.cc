#include "chat/calls/call_rules.h"

#include <algorithm>
#include <functional>
#include <initializer_list>

#include "chat/calls/xml_value.h"
#include "grammar/json_rules.h"
#include "grammar/text_rules.h"
#include "json/json_string.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

// Arguments are an object whatever the schema says or leaves out; one that describes no keys has none.
Json parameters_of(const Tool& tool) {
  Json parameters = tool.parameters.is_null() ? Json::object() : tool.parameters;
  const auto says = [&](std::initializer_list<const char*> keywords) {
    return std::ranges::any_of(keywords, [&](const char* keyword) { return parameters.contains(keyword); });
  };
  if (!parameters.is_object() || says({"$ref", "anyOf", "oneOf", "allOf", "enum", "const"})) return parameters;
  if (!says({"type"})) parameters["type"] = "object";
  if (!says({"properties", "patternProperties", "additionalProperties"})) parameters["properties"] = Json::object();
  return parameters;
}

}  // namespace

std::string tool_title(const Tool& tool) { return fmt::format("tool {:.60}", tool.name); }

bool ToolArguments::is_required(std::string_view key) const {
  return std::ranges::find(required, Json(key)) != required.end();
}

Result<ToolArguments> read_tool_arguments(const Tool& tool) {
  ToolArguments arguments{.parameters = parameters_of(tool), .properties = {}, .required = {}};
  EBB_RETURN_IF_ERROR(check_schema_size(arguments.parameters));  // properties are looked up one by one
  arguments.properties = arguments.parameters.value("properties", Json::object());
  arguments.required = arguments.parameters.value("required", Json::array());
  if (!arguments.properties.is_object() || !arguments.required.is_array()) {
    return error(Code::kInvalidArgument, "schema, {}: properties must be an object, required a list", tool_title(tool));
  }
  return arguments;
}

Result<std::string> add_calls(SchemaRules& rules, const std::vector<Tool>& tools, const std::string& between,
                              bool parallel, const std::function<Result<std::string>(const Tool&)>& write_call) {
  if (tools.empty()) return error(Code::kInvalidArgument, "a tool call was asked for, and there are no tools");
  std::vector<std::string> ways;
  for (const Tool& tool : tools) {
    EBB_ASSIGN_OR_RETURN(ways.emplace_back(), write_call(tool));
  }
  const std::string call = rules.grammar().add_fresh(fmt::format("{}", fmt::join(ways, " | ")));
  if (!parallel) return call;
  return fmt::format("{} ({} {})*", call, grammar_literal(between), call);
}

namespace {

// The arguments of a tool in tags, `text` being what a string may be.
Result<std::string> add_tagged_arguments(SchemaRules& rules, const Tool& tool, const ArgumentTags& tags,
                                         const std::string& text) {
  EBB_ASSIGN_OR_RETURN(const ToolArguments takes, read_tool_arguments(tool));
  std::vector<std::string> arguments;
  for (const auto& [key, schema] : takes.properties.items()) {
    const JsonTypes types = find_argument_types(&tool, key);
    std::string value = text;
    if ((types & JsonType::kString) == 0) {
      EBB_ASSIGN_OR_RETURN(value, rules.add_part(takes.parameters, schema, tool_title(tool) + "/properties/" + key));
    }
    // Free text is a string's, whatever else it may be.
    const JsonTypes written = (types & JsonType::kString) != 0 ? JsonType::kString : types;
    std::vector<std::string> heads;
    for (const auto& [type, end] : tags.key_ends) {
      const std::string head = grammar_literal(tags.before_key + key + end);
      if ((type & written) != 0 && std::ranges::find(heads, head) == heads.end()) heads.push_back(head);
    }
    const std::string rule = rules.grammar().add_fresh(
        fmt::format("({}) {} {}", fmt::join(heads, " | "), value, grammar_literal(tags.value_end)));
    arguments.push_back(rule + (takes.is_required(key) ? "" : "?"));
  }
  return fmt::format("{}", fmt::join(arguments, " "));
}

}  // namespace

Result<std::string> add_form_calls(SchemaRules& rules, const std::vector<Tool>& tools, const CallForm& form,
                                   bool parallel) {
  const std::string text = form.tags ? add_text_without(rules.grammar(), {form.tags->value_end}) : "";
  const auto write_call = [&](const Tool& tool) -> Result<std::string> {
    std::vector<std::string> parts;
    for (const CallPiece& piece : form.call) {
      switch (piece.kind) {
        case CallPiece::Kind::kText: parts.push_back(grammar_literal(piece.text)); break;
        case CallPiece::Kind::kName: parts.push_back(grammar_literal(form.written_name(tool.name))); break;
        case CallPiece::Kind::kId: parts.emplace_back("[a-zA-Z0-9]{9}"); break;
        case CallPiece::Kind::kIndex: parts.emplace_back("[0-9]{1,3}"); break;
        case CallPiece::Kind::kArguments: {
          EBB_ASSIGN_OR_RETURN(parts.emplace_back(), form.tags
                                                         ? add_tagged_arguments(rules, tool, *form.tags, text)
                                                         : rules.add_schema(parameters_of(tool), tool_title(tool)));
          break;
        }
      }
    }
    return fmt::format("{}", fmt::join(parts, " "));
  };
  EBB_ASSIGN_OR_RETURN(const std::string calls, add_calls(rules, tools, form.between, parallel, write_call));
  // The last mark may be one that ends generation, so that it is never seen.
  const std::size_t last = form.close.ends_with('>') ? form.close.rfind('<') : form.close.size();
  const std::string rest = form.close.substr(std::min(last, form.close.size()));
  return fmt::format("{} {} {} {}", grammar_literal(form.open), calls, grammar_literal(form.close.substr(0, last)),
                     rest.empty() ? "" : grammar_literal(rest) + "?");
}

}  // namespace ebb
