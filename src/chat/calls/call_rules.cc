#include "chat/calls/call_rules.h"

#include <algorithm>
#include <functional>
#include <initializer_list>

#include "base/split_text.h"
#include "chat/calls/xml_value.h"
#include "grammar/value_syntax.h"

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

bool ToolArguments::takes_any() const {
  return properties.empty() && parameters.value("additionalProperties", Json(false)) == true;
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

// The same schema for values of these types alone.
Json only_of(const Json& schema, JsonTypes types) {
  constexpr std::pair<JsonTypes, const char*> kNames[] = {
      {JsonType::kString, "string"}, {JsonType::kNumber, "number"}, {JsonType::kBoolean, "boolean"},
      {JsonType::kNull, "null"},     {JsonType::kObject, "object"}, {JsonType::kArray, "array"}};
  Json names = Json::array();
  for (const auto& [type, name] : kNames) {
    if ((types & type) != 0) names.emplace_back(name);
  }
  return Json{{"allOf", Json::array({schema, Json{{"type", std::move(names)}}})}};
}

// The arguments of tools in tags: strings as they are, up to the mark behind them, everything else as JSON.
class TaggedArguments {
 public:
  TaggedArguments(SchemaRules& rules, const ArgumentTags& tags)
      : rules_(rules),
        tags_(tags),
        strings_{
            .name = "raw-", .open = "", .close = tags.value_end, .is_raw = true, .barred = trimmed(tags.value_end)} {}

  Result<std::string> add(const Tool& tool) {
    EBB_ASSIGN_OR_RETURN(const ToolArguments takes, read_tool_arguments(tool));
    if (takes.takes_any()) return add_any();
    std::vector<std::string> arguments;
    for (const auto& [key, schema] : takes.properties.items()) {
      const std::string title = tool_title(tool) + "/properties/" + key;
      EBB_ASSIGN_OR_RETURN(const auto ways,
                           add_ways(takes.parameters, key, schema, title, find_argument_types(&tool, key)));
      const bool is_required = takes.is_required(key);
      if (ways.empty() && !is_required) continue;
      if (ways.empty()) return error(Code::kInvalidArgument, "schema, {}: nothing can match it", title);
      const std::string rule = rules_.grammar().add_fresh(fmt::format("{}", fmt::join(ways, " | ")));
      arguments.push_back(rule + (is_required ? "" : "?"));
    }
    return fmt::format("{}", fmt::join(arguments, " "));
  }

 private:
  std::string add_any() {
    const auto end =
        std::ranges::find_if(tags_.key_ends, [](const auto& one) { return (one.first & JsonType::kString) != 0; });
    const std::string key_end = end == tags_.key_ends.end() ? tags_.key_ends.begin()->second : end->second;
    const std::string key = rules_.grammar().add_fresh("[a-zA-Z0-9_.-]{1,64}");
    const std::string argument =
        rules_.grammar().add_fresh(fmt::format("{} {} {} {}", grammar_literal(tags_.before_key), key,
                                               grammar_literal(key_end), add_any_string(rules_.grammar(), strings_)));
    return argument + "*";
  }

  // One for each end of the key. A string that may be any text is all that is written.
  Result<std::vector<std::string>> add_ways(const Json& root, const std::string& key, const Json& schema,
                                            const std::string& title, JsonTypes types) {
    std::vector<std::string> ways;
    std::vector<std::pair<std::string, JsonTypes>> others;
    for (const auto& [type, end] : tags_.key_ends) {
      if ((type & types & JsonType::kString) != 0) {
        const bool is_all = types == JsonType::kString;
        EBB_ASSIGN_OR_RETURN(
            const auto value,
            rules_.find_part(root, is_all ? schema : only_of(schema, JsonType::kString), title, strings_));
        const std::string head = grammar_literal(tags_.before_key + key + end);
        if (value) ways.push_back(fmt::format("{} {}", head, *value));
        if (value == add_any_string(rules_.grammar(), strings_)) return ways;
      }
      const JsonTypes here = type & types & ~JsonType::kString;
      if (here == 0) continue;
      const auto same = std::ranges::find(others, end, &std::pair<std::string, JsonTypes>::first);
      if (same == others.end()) {
        others.emplace_back(end, here);
      } else {
        same->second |= here;
      }
    }
    for (const auto& [end, here] : others) {
      EBB_ASSIGN_OR_RETURN(const auto value,
                           rules_.find_part(root, here == types ? schema : only_of(schema, here), title, kJsonSyntax));
      const std::string head = grammar_literal(tags_.before_key + key + end);
      if (value) ways.push_back(fmt::format("{} ({}) {}", head, *value, grammar_literal(tags_.value_end)));
    }
    return ways;
  }

  SchemaRules& rules_;
  const ArgumentTags& tags_;
  ValueSyntax strings_;
};

}  // namespace

Result<std::string> add_form_calls(SchemaRules& rules, const std::vector<Tool>& tools, const CallForm& form,
                                   bool parallel) {
  std::optional<TaggedArguments> tagged;
  if (form.tags) tagged.emplace(rules, *form.tags);
  const auto write_call = [&](const Tool& tool) -> Result<std::string> {
    std::vector<std::string> parts;
    for (const CallPiece& piece : form.call) {
      switch (piece.kind) {
        case CallPiece::Kind::kText: parts.push_back(grammar_literal(piece.text)); break;
        case CallPiece::Kind::kName: parts.push_back(grammar_literal(form.written_name(tool.name))); break;
        case CallPiece::Kind::kId: parts.emplace_back("[a-zA-Z0-9]{9}"); break;
        case CallPiece::Kind::kIndex: parts.emplace_back("[0-9]{1,3}"); break;
        case CallPiece::Kind::kArguments: {
          EBB_ASSIGN_OR_RETURN(parts.emplace_back(),
                               tagged ? tagged->add(tool) : rules.add_schema(parameters_of(tool), tool_title(tool)));
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
