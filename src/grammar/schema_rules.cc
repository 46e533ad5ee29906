#include "grammar/schema_rules.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "grammar/json_rules.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

// Levels of values inside values. References end a chain of them.
constexpr int kMaxValueDepth = 64;

Status check_size(const Json& value, int depth, std::size_t& n_values) {
  if (depth > SchemaRules::kMaxDocumentDepth || ++n_values > SchemaRules::kMaxDocumentValues) {
    return error(Code::kInvalidArgument, "the schema is larger than {} values or deeper than {} levels",
                 SchemaRules::kMaxDocumentValues, SchemaRules::kMaxDocumentDepth);
  }
  if (!value.is_structured()) return {};
  for (const Json& item : value) EBB_RETURN_IF_ERROR(check_size(item, depth + 1, n_values));
  return {};
}

std::string_view type_name(const Json& value) {
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "boolean";
  if (value.is_null()) return "null";
  if (value.is_object()) return "object";
  return value.is_array() ? "array" : "number";
}

bool is_whole(const Json& value) {
  return value.is_number_integer() ||
         (value.is_number_float() && value.get<double>() == std::trunc(value.get<double>()));
}

bool is_of_type(const Json& value, const std::vector<std::string>& types) {
  return std::any_of(types.begin(), types.end(), [&](const std::string& type) {
    return type == type_name(value) || (type == "integer" && value.is_number() && is_whole(value));
  });
}

}  // namespace

Status check_schema_size(const Json& schema) {
  std::size_t n_values = 0;
  return check_size(schema, 0, n_values);
}

Result<std::optional<std::size_t>> find_count(const Json& schema, const char* keyword, const std::string& path) {
  const auto found = schema.find(keyword);
  if (found == schema.end()) return std::optional<std::size_t>();
  const double count = found->is_number() ? found->get<double>() : -1;
  if (!(count >= 0) || count != std::trunc(count)) {
    return error(Code::kInvalidArgument, "schema, {}: {} must be a whole number, 0 or more", path, keyword);
  }
  return std::optional<std::size_t>(count > 1e15 ? std::size_t{1000000000000000} : static_cast<std::size_t>(count));
}

Result<std::string> SchemaRules::add_schema(const Json& schema, const std::string& title) {
  return add_part(schema, schema, title);
}

Result<std::optional<std::string>> SchemaRules::find_part(const Json& root, const Json& schema,
                                                          const std::string& title, const ValueSyntax& syntax) {
  std::size_t n_values = 0;
  EBB_RETURN_IF_ERROR(check_size(root, 0, n_values));
  EBB_RETURN_IF_ERROR(check_size(schema, 0, n_values));
  return SchemaWriter(root, n_values, syntax, rules_, notes_).add_value(schema, title);
}

Result<std::string> SchemaRules::add_part(const Json& root, const Json& schema, const std::string& title,
                                          const ValueSyntax& syntax) {
  EBB_ASSIGN_OR_RETURN(const auto rule, find_part(root, schema, title, syntax));
  if (!rule) return error(Code::kInvalidArgument, "schema, {}: nothing can match it", title);
  return rules_.add_fresh(*rule);
}

SchemaWriter::Expression SchemaWriter::add_value(const Json& schema, const std::string& path) {
  if (rules_.too_large()) return rules_.finish().status();
  if (schema.is_object() && schema.contains("$ref")) return add_reference(schema, path);
  EBB_ASSIGN_OR_RETURN(const auto list, flattener_.flatten(schema, path));
  return add_alternatives(list, path);
}

// A value inside a value: references that were begun outside may be used again there.
SchemaWriter::Expression SchemaWriter::add_inner(const Json& schema, const std::string& path) {
  if (depth_ >= kMaxValueDepth) {
    return error(Code::kInvalidArgument, "schema, {}: values are nested more than {} deep", path, kMaxValueDepth);
  }
  std::vector<std::string> outside = std::exchange(here_, {});
  ++depth_;
  Expression inner = add_value(schema, path);
  --depth_;
  here_ = std::move(outside);
  return inner;
}

SchemaWriter::Expression SchemaWriter::add_reference(const Json& reference, const std::string& path) {
  const std::string key = reference.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (std::find(here_.begin(), here_.end(), key) != here_.end()) {
    return error(Code::kInvalidArgument, "schema, {}: the $ref refers to itself without a value between", path);
  }
  if (const auto known = references_.find(key); known != references_.end()) return std::optional(known->second);
  const std::string rule = rules_.fresh_name();
  references_.emplace(key, rule);
  here_.push_back(key);

  EBB_ASSIGN_OR_RETURN(auto list, flattener_.flatten(reference, path));
  std::optional<std::string> body;
  if (list.size() == 1 && list[0].size() == 1 && list[0].contains("$ref")) {
    EBB_ASSIGN_OR_RETURN(const Json* target, flattener_.find_target(list[0]["$ref"], path));
    EBB_ASSIGN_OR_RETURN(body, add_value(*target, path));
  } else {
    EBB_ASSIGN_OR_RETURN(body, add_alternatives(list, path));
  }
  if (!body) return error(Code::kInvalidArgument, "schema, {}: nothing can match what the $ref names", path);
  here_.pop_back();
  return std::optional(rules_.add(rule, *body));
}

SchemaWriter::Expression SchemaWriter::add_alternatives(const std::vector<Json>& list, const std::string& path) {
  std::vector<std::string> ways;
  for (const Json& schema : list) {
    const bool is_reference = schema.size() == 1 && schema.contains("$ref");
    EBB_ASSIGN_OR_RETURN(const auto way, is_reference ? add_reference(schema, path) : add_plain(schema, path));
    if (way && std::find(ways.begin(), ways.end(), *way) == ways.end()) ways.push_back(*way);
  }
  if (ways.empty()) return std::optional<std::string>();
  if (ways.size() == 1) return std::optional(ways[0]);
  return std::optional(rules_.add_fresh(fmt::format("{}", fmt::join(ways, " | "))));
}

Result<std::vector<std::string>> SchemaWriter::find_types(const Json& schema, const std::string& path) {
  std::vector<std::string> types;
  if (const auto type = schema.find("type"); type != schema.end()) {
    const Json list = type->is_array() ? *type : Json::array({*type});
    for (const Json& item : list) {
      const std::string name = item.is_string() ? item.get<std::string>() : "";
      constexpr std::string_view kTypes[] = {"string", "number", "integer", "boolean", "null", "object", "array"};
      if (std::find(std::begin(kTypes), std::end(kTypes), name) == std::end(kTypes)) {
        return error(Code::kInvalidArgument, "schema, {}: '{:.40}' is no type", path, name);
      }
      types.push_back(name);
    }
    return types;
  }
  // Without a type, the one that its keywords speak of.
  const auto speaks_of = [&](std::initializer_list<const char*> keywords) {
    return std::any_of(keywords.begin(), keywords.end(), [&](const char* word) { return schema.contains(word); });
  };
  if (speaks_of({"properties", "required", "additionalProperties"})) types.emplace_back("object");
  if (speaks_of({"items", "prefixItems", "minItems", "maxItems"})) types.emplace_back("array");
  if (speaks_of({"pattern", "format", "minLength", "maxLength"})) types.emplace_back("string");
  if (speaks_of({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})) types.emplace_back("number");
  return types;
}

SchemaWriter::Expression SchemaWriter::add_plain(const Json& schema, const std::string& path) {
  EBB_ASSIGN_OR_RETURN(const auto types, find_types(schema, path));
  if (schema.contains("enum")) return add_values(schema, path);
  if (types.empty()) return std::optional(add_any_value(rules_, syntax_));
  const bool has_number = std::find(types.begin(), types.end(), "number") != types.end();
  std::vector<std::string> ways;
  for (const std::string& type : types) {
    if (type == "integer" && has_number) continue;
    EBB_ASSIGN_OR_RETURN(const auto way, add_typed(type, schema, path));
    if (way) ways.push_back(*way);
  }
  if (ways.empty()) return std::optional<std::string>();
  if (ways.size() == 1) return std::optional(ways[0]);
  return std::optional(rules_.add_fresh(fmt::format("{}", fmt::join(ways, " | "))));
}

SchemaWriter::Expression SchemaWriter::add_typed(std::string_view type, const Json& schema, const std::string& path) {
  if (type == "object") return add_object(schema, path);
  if (type == "array") return add_array(schema, path);
  if (type == "string") return add_string(schema, path);
  if (type == "boolean") return std::optional(add_boolean_rule(rules_));
  if (type == "null") return std::optional<std::string>("\"null\"");
  return add_number(schema, path, type == "integer");
}

SchemaWriter::Expression SchemaWriter::add_values(const Json& schema, const std::string& path) {
  if (!schema["enum"].is_array()) {
    return error(Code::kInvalidArgument, "schema, {}: enum must be a list of values", path);
  }
  std::vector<std::string> types;
  if (schema.contains("type")) {
    EBB_ASSIGN_OR_RETURN(types, find_types(schema, path));
  }
  for (const auto& [keyword, value] : schema.items()) {
    if (keyword != "enum" && keyword != "type") notes_.add(fmt::format("{} beside enum at {}", keyword, path));
  }
  std::vector<std::string> ways;
  for (const Json& value : schema["enum"]) {
    if (schema.contains("type") && !is_of_type(value, types)) continue;
    if (auto way = literal(value)) ways.push_back(*std::move(way));
  }
  if (ways.empty()) return std::optional<std::string>();
  return std::optional(rules_.add_fresh(fmt::format("{}", fmt::join(ways, " | "))));
}

Result<std::optional<std::size_t>> SchemaWriter::find_most(const Json& schema, const char* keyword,
                                                           const std::string& path) {
  EBB_ASSIGN_OR_RETURN(const auto most, find_count(schema, keyword, path));
  if (!most || *most <= GrammarRules::kMaxRepetitions) return most;
  notes_.add(fmt::format("{} above {} at {}", keyword, GrammarRules::kMaxRepetitions, path));
  return std::optional<std::size_t>();
}

// The one way to write a value, but for the spaces behind ':' and ','; nothing: the syntax has none.
std::optional<std::string> SchemaWriter::literal(const Json& value) {
  if (value.is_string()) {
    const auto text = written_string(syntax_, value.get_ref<const std::string&>());
    return text ? std::optional(grammar_literal(*text)) : std::nullopt;
  }
  if (!value.is_structured()) return grammar_literal(value.dump());
  const std::string sp = add_space(rules_, syntax_);
  std::string all = value.is_object() ? "\"{\"" : "\"[\"";
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    if (!std::exchange(first, false)) all += " \",\" " + sp;
    if (value.is_object()) all += " " + grammar_literal(written_key(syntax_, key)) + " " + sp;
    const auto inside = literal(item);
    if (!inside) return std::nullopt;
    all += " " + *inside;
  }
  return all + (value.is_object() ? " \"}\"" : " \"]\"");
}

}  // namespace ebb
