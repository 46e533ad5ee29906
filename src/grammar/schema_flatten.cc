#include "grammar/schema_flatten.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_annotation(std::string_view keyword) {
  return keyword.starts_with("x-") ||
         is_one_of(keyword, {"$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "title", "description",
                             "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "contentEncoding",
                             "contentMediaType", "$vocabulary", "discriminator"});
}

bool is_supported(std::string_view keyword) {
  return is_one_of(keyword, {"type", "enum", "properties", "required", "additionalProperties", "items", "prefixItems",
                             "minItems", "maxItems", "minLength", "maxLength", "pattern", "format", "minimum",
                             "maximum", "exclusiveMinimum", "exclusiveMaximum"});
}

// Written, and without effect.
bool means_nothing(std::string_view keyword, const Json& value) {
  if (keyword == "uniqueItems" || keyword == "nullable" || keyword == "strict") return value == false;
  if (keyword == "minProperties") return value == 0;
  return false;
}

bool is_reference(const Json& schema) { return schema.size() == 1 && schema.contains("$ref"); }

}  // namespace

void SchemaNotes::add(std::string note) {
  if (std::find(unsupported.begin(), unsupported.end(), note) == unsupported.end()) {
    unsupported.push_back(std::move(note));
  }
}

Result<const Json*> SchemaFlattener::find_target(const Json& reference, const std::string& path) const {
  if (!reference.is_string()) return error(Code::kInvalidArgument, "schema, {}: $ref must be a string", path);
  const auto& pointer = reference.get_ref<const std::string&>();
  const auto missing = [&] {
    return error(Code::kInvalidArgument, "schema, {}: $ref '{:.100}' names nothing in this schema", path, pointer);
  };
  if (!pointer.starts_with('#')) return missing();
  const Json* at = &root_;
  for (std::size_t begin = 1; begin < pointer.size();) {
    if (pointer[begin] != '/') return missing();
    const std::size_t end = std::min(pointer.find('/', begin + 1), pointer.size());
    std::string key;
    for (std::size_t i = begin + 1; i < end; ++i) {
      const bool escaped = pointer[i] == '~' && i + 1 < end && (pointer[i + 1] == '0' || pointer[i + 1] == '1');
      key += escaped ? (pointer[++i] == '0' ? '~' : '/') : pointer[i];
    }
    if (at->is_array() && !key.empty() && key.size() < 6 && key.find_first_not_of("0123456789") == key.npos) {
      const std::size_t index = std::stoul(key);
      if (index >= at->size()) return missing();
      at = &(*at)[index];
    } else if (at->is_object() && at->contains(key)) {
      at = &at->at(key);
    } else {
      return missing();
    }
    begin = end;
  }
  return at;
}

// Annotations are dropped, what is not supported is noted; `const` becomes an enum of one.
Status SchemaFlattener::split(const Json& schema, const std::string& path, Json& plain, Json& combined) {
  for (const auto& [keyword, value] : schema.items()) {
    if (is_annotation(keyword) || means_nothing(keyword, value)) continue;
    if (is_one_of(keyword, {"allOf", "anyOf", "oneOf"})) {
      if (!value.is_array() || value.empty()) {
        return error(Code::kInvalidArgument, "schema, {}: {} must be a list of schemas", path, keyword);
      }
      combined[keyword] = value;
    } else if (keyword == "$ref") {
      const bool is_local = value.is_string() && value.get_ref<const std::string&>().starts_with('#');
      if (value.is_string() && !is_local) {
        notes_.add(fmt::format("remote $ref at {}", path));
      } else {
        combined[keyword] = value;
      }
    } else if (keyword == "const") {
      plain["enum"] = Json::array({value});
    } else if (is_supported(keyword)) {
      plain[keyword] = value;
    } else {
      notes_.add(fmt::format("{:.60} at {}", keyword, path));
    }
  }
  if (schema.contains("const") && schema.contains("enum")) {
    const Json& values = schema["enum"];
    const bool listed = values.is_array() && std::find(values.begin(), values.end(), schema["const"]) != values.end();
    plain["enum"] = listed ? Json::array({schema["const"]}) : Json::array();
  }
  return {};
}

Result<std::vector<Json>> SchemaFlattener::flatten_at(const Json& schema, const std::string& path, int depth) {
  if (depth > kMaxDepth || ++n_steps_ > kMaxSteps) {
    return error(Code::kInvalidArgument,
                 "schema, {}: $ref, allOf and anyOf are nested too deep or too often here, or refer to themselves",
                 path);
  }
  if (schema.is_boolean()) {
    return schema.get<bool>() ? std::vector<Json>{Json::object()} : std::vector<Json>{};
  }
  if (!schema.is_object()) {
    return error(Code::kInvalidArgument, "schema, {}: a schema is an object, true or false", path);
  }
  Json plain = Json::object();
  Json combined = Json::object();
  EBB_RETURN_IF_ERROR(split(schema, path, plain, combined));
  if (combined.empty()) return std::vector<Json>{plain};
  if (plain.empty() && is_reference(combined)) return std::vector<Json>{combined};

  std::vector<Json> all = {plain};
  if (combined.contains("$ref")) {
    const Json reference = {{"$ref", combined["$ref"]}};
    EBB_ASSIGN_OR_RETURN(all, product(std::move(all), {reference}, path, depth));
  }
  if (combined.contains("allOf")) {
    for (const Json& item : combined["allOf"]) {
      EBB_ASSIGN_OR_RETURN(auto flat, flatten_at(item, path, depth + 1));
      EBB_ASSIGN_OR_RETURN(all, product(std::move(all), std::move(flat), path, depth));
    }
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (!combined.contains(keyword)) continue;
    EBB_ASSIGN_OR_RETURN(auto flat, flatten_any(combined[keyword], path, depth));
    EBB_ASSIGN_OR_RETURN(all, product(std::move(all), std::move(flat), path, depth));
  }
  return all;
}

Result<std::vector<Json>> SchemaFlattener::flatten_any(const Json& list, const std::string& path, int depth) {
  std::vector<Json> all;
  for (const Json& item : list) {
    EBB_ASSIGN_OR_RETURN(auto flat, flatten_at(item, path, depth + 1));
    for (Json& schema : flat) {
      if (std::find(all.begin(), all.end(), schema) == all.end()) all.push_back(std::move(schema));
    }
    if (all.size() > kMaxAlternatives) {
      return error(Code::kInvalidArgument, "schema, {}: more than {} alternatives", path, kMaxAlternatives);
    }
  }
  return all;
}

Result<std::vector<Json>> SchemaFlattener::without_references(std::vector<Json> list, const std::string& path,
                                                              int depth) {
  std::vector<Json> all;
  for (Json& schema : list) {
    if (!is_reference(schema)) {
      all.push_back(std::move(schema));
      continue;
    }
    EBB_ASSIGN_OR_RETURN(const Json* target, find_target(schema["$ref"], path));
    EBB_ASSIGN_OR_RETURN(auto flat, flatten_at(*target, path, depth + 1));
    EBB_ASSIGN_OR_RETURN(flat, without_references(std::move(flat), path, depth + 1));
    for (Json& found : flat) all.push_back(std::move(found));
  }
  return all;
}

Result<std::vector<Json>> SchemaFlattener::product(std::vector<Json> a, std::vector<Json> b, const std::string& path,
                                                   int depth) {
  const auto is_free = [](const std::vector<Json>& list) { return list.size() == 1 && list[0].empty(); };
  if (is_free(a)) return b;
  if (is_free(b)) return a;
  EBB_ASSIGN_OR_RETURN(a, without_references(std::move(a), path, depth));
  EBB_ASSIGN_OR_RETURN(b, without_references(std::move(b), path, depth));
  n_steps_ += a.size() * b.size() * merge_steps_;
  if (a.size() * b.size() > kMaxAlternatives || n_steps_ > kMaxSteps) {
    return error(Code::kInvalidArgument, "schema, {}: more alternatives than {} here or {} values merged in all", path,
                 kMaxAlternatives, 200 * kMaxSteps);
  }
  std::vector<Json> all;
  for (const Json& left : a) {
    for (const Json& right : b) {
      if (auto merged = merge_schemas(left, right, path, notes_)) all.push_back(std::move(*merged));
    }
  }
  return all;
}

}  // namespace ebb
