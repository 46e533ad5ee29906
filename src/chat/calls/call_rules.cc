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

std::string title_of(const Tool& tool) { return fmt::format("tool {:.60}", tool.name); }

// One rule of all tools' calls, and the same call several times.
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

}  // namespace

Result<std::string> add_object_calls(SchemaRules& rules, const std::vector<Tool>& tools, const ObjectCallForm& form) {
  const auto write_call = [&](const Tool& tool) -> Result<std::string> {
    EBB_ASSIGN_OR_RETURN(const std::string arguments, rules.add_schema(parameters_of(tool), title_of(tool)));
    const std::string head =
        fmt::format("{}{{\"name\": {}, \"{}\": ", form.before, to_json_string(tool.name), form.arguments_key);
    const std::string tail = "}" + form.after;
    if (form.id.empty()) return fmt::format("{} {} {}", grammar_literal(head), arguments, grammar_literal(tail));
    return fmt::format("{} {} {} {} {}", grammar_literal(head), arguments, grammar_literal(", \"id\": \""), form.id,
                       grammar_literal("\"" + tail));
  };
  EBB_ASSIGN_OR_RETURN(const std::string calls, add_calls(rules, tools, form.between, form.parallel, write_call));
  return fmt::format("{} {} {}", grammar_literal(form.open), calls, grammar_literal(form.close));
}

Result<std::string> add_named_calls(SchemaRules& rules, const std::vector<Tool>& tools, const NamedCallForm& form) {
  return add_calls(rules, tools, "", form.parallel, [&](const Tool& tool) -> Result<std::string> {
    EBB_ASSIGN_OR_RETURN(const std::string arguments, rules.add_schema(parameters_of(tool), title_of(tool)));
    const std::string head = grammar_literal(form.before + tool.name + form.behind_name);
    if (form.id.empty()) return fmt::format("{} {}", head, arguments);
    return fmt::format("{} {} {} {}", head, form.id, grammar_literal(form.behind_id), arguments);
  });
}

Result<std::string> add_tagged_calls(SchemaRules& rules, const std::vector<Tool>& tools, const TaggedCallForm& form) {
  GrammarRules& grammar = rules.grammar();
  const std::string text = add_text_without(grammar, {form.value_end});
  const std::string end = grammar_literal(form.value_end);
  const auto write_call = [&](const Tool& tool) -> Result<std::string> {
    const Json parameters = parameters_of(tool);
    EBB_RETURN_IF_ERROR(check_schema_size(parameters));  // properties are looked up one by one
    const Json properties = parameters.value("properties", Json::object());
    const Json required = parameters.value("required", Json::array());
    if (!properties.is_object() || !required.is_array()) {
      return error(Code::kInvalidArgument, "schema, {}: properties must be an object, required a list", title_of(tool));
    }
    std::string call = grammar_literal(form.open + tool.name + form.behind_name);
    for (const auto& [key, schema] : properties.items()) {
      std::string value = text;
      if ((find_argument_types(&tool, key) & JsonType::kString) == 0) {
        EBB_ASSIGN_OR_RETURN(value, rules.add_part(parameters, schema, title_of(tool) + "/properties/" + key));
      }
      const std::string rule = grammar.add_fresh(
          fmt::format("{} {} {}", grammar_literal(form.before_key + key + form.behind_key), value, end));
      const bool is_required = std::find(required.begin(), required.end(), Json(key)) != required.end();
      call += " " + rule + (is_required ? "" : "?");
    }
    return call + " " + grammar_literal(form.close);
  };
  return add_calls(rules, tools, form.between, form.parallel, write_call);
}

}  // namespace ebb
