#include <algorithm>
#include <utility>

#include "grammar/schema_flatten.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

Json both(const Json& a, const Json& b) {
  if (a == b || b == true) return a;
  if (a == true) return b;
  if (a == false || b == false) return false;
  return Json{{"allOf", Json::array({a, b})}};
}

Json type_list(const Json& type) { return type.is_array() ? type : Json::array({type}); }

bool has(const Json& list, const Json& item) { return std::find(list.begin(), list.end(), item) != list.end(); }

// Types of both; every integer is a number.
Json common_types(const Json& a, const Json& b) {
  const Json left = type_list(a);
  const Json right = type_list(b);
  Json types = Json::array();
  for (const Json& type : left) {
    if (has(right, type) || (type == "integer" && has(right, "number"))) types.push_back(type);
  }
  if (has(left, "number") && has(right, "integer") && !has(types, "integer")) types.push_back("integer");
  return types;
}

Json common_values(const Json& a, const Json& b) {
  Json values = Json::array();
  for (const Json& value : a) {
    if (b.is_array() && has(b, value)) values.push_back(value);
  }
  return values;
}

// Properties that only one schema names must match what the other says of additional ones.
void add_properties(Json& merged, const Json& own, const Json& other) {
  if (!own.contains("properties") || !own["properties"].is_object()) return;
  const bool named = other.contains("properties") && other["properties"].is_object();
  for (const auto& [key, schema] : own["properties"].items()) {
    if (merged.contains(key)) continue;
    if (named && other["properties"].contains(key)) {
      merged[key] = both(schema, other["properties"][key]);
    } else if (other.contains("additionalProperties")) {
      merged[key] = both(schema, other["additionalProperties"]);
    } else {
      merged[key] = schema;
    }
  }
}

Json common_prefix(const Json& a, const Json& b) {
  const auto prefix = [](const Json& schema) {
    return schema.contains("prefixItems") && schema["prefixItems"].is_array() ? schema["prefixItems"] : Json::array();
  };
  const auto rest = [](const Json& schema) { return schema.contains("items") ? schema["items"] : Json(true); };
  const Json left = prefix(a);
  const Json right = prefix(b);
  Json merged = Json::array();
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    merged.push_back(both(i < left.size() ? left[i] : rest(a), i < right.size() ? right[i] : rest(b)));
  }
  return merged;
}

}  // namespace

std::optional<Json> merge_schemas(const Json& a, const Json& b, const std::string& path, SchemaNotes& notes) {
  Json merged = a;
  for (const auto& [keyword, value] : b.items()) {
    if (keyword == "properties" || keyword == "prefixItems") continue;
    if (!merged.contains(keyword)) {
      merged[keyword] = value;
      continue;
    }
    Json& own = merged[keyword];
    if (own == value) continue;
    const bool numbers = own.is_number() && value.is_number();
    if (keyword == "type") {
      own = common_types(own, value);
    } else if (keyword == "enum") {
      own = common_values(own, value);
    } else if (keyword == "required" && own.is_array() && value.is_array()) {
      for (const Json& key : value) {
        if (!has(own, key)) own.push_back(key);
      }
    } else if (keyword == "additionalProperties" || keyword == "items") {
      own = both(own, value);
    } else if (numbers && (keyword.starts_with("min") || keyword == "exclusiveMinimum")) {
      own = std::max(own, value);
    } else if (numbers) {
      own = std::min(own, value);
    } else {
      notes.add(fmt::format("a second {} at {}", keyword, path));
    }
    if ((keyword == "type" || keyword == "enum") && own.empty()) return std::nullopt;
  }
  Json properties = Json::object();
  add_properties(properties, a, b);
  add_properties(properties, b, a);
  if (!properties.empty()) merged["properties"] = std::move(properties);
  if (a.contains("prefixItems") || b.contains("prefixItems")) merged["prefixItems"] = common_prefix(a, b);
  return merged;
}

}  // namespace ebb
