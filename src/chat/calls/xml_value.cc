#include "chat/calls/xml_value.h"

#include <set>
#include <utility>
#include <vector>

#include "json/json_string.h"
#include "json/parse_json.h"

namespace ebb {
namespace {

using Json = nlohmann::ordered_json;

// A property that leads to more schemas than these may be of any type.
constexpr std::size_t kMaxSchemas = 256;

JsonTypes type_named(std::string_view name) {
  if (name == "string") return JsonType::kString;
  if (name == "number" || name == "integer") return JsonType::kNumber;
  if (name == "boolean") return JsonType::kBoolean;
  if (name == "null") return JsonType::kNull;
  if (name == "object") return JsonType::kObject;
  if (name == "array") return JsonType::kArray;
  return 0;
}

const Json* find_member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

// "#/$defs/point" inside the root; only plain pointers, as schemas of tools use them.
const Json* find_reference(const Json& root, std::string_view pointer) {
  if (!pointer.starts_with("#")) return nullptr;
  pointer.remove_prefix(1);
  const Json* at = &root;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string key(pointer.substr(0, pointer.find('/')));
    at = find_member(*at, key.c_str());
    if (at == nullptr) return nullptr;
    pointer.remove_prefix(key.size());
  }
  return at;
}

// What one schema says; the schemas that it leaves it to go to `next`.
JsonTypes types_here(const Json& root, const Json& schema, std::vector<const Json*>& next) {
  if (const Json* reference = find_member(schema, "$ref"); reference != nullptr && reference->is_string()) {
    const Json* target = find_reference(root, reference->get_ref<const std::string&>());
    if (target == nullptr) return JsonType::kAny;
    next.push_back(target);
    return 0;
  }
  JsonTypes types = 0;
  if (const Json* type = find_member(schema, "type")) {
    if (type->is_string()) types |= type_named(type->get_ref<const std::string&>());
    if (type->is_array()) {
      for (const Json& name : *type) types |= name.is_string() ? type_named(name.get_ref<const std::string&>()) : 0;
    }
    return types == 0 ? JsonType::kAny : types;
  }
  if (const Json* constant = find_member(schema, "const")) return json_type_of(*constant);
  for (const char* keyword : {"enum", "anyOf", "oneOf", "allOf"}) {
    const Json* list = find_member(schema, keyword);
    if (list == nullptr || !list->is_array() || list->empty()) continue;
    const bool is_values = std::string_view(keyword) == "enum";
    for (const Json& item : *list) {
      if (is_values) {
        types |= json_type_of(item);
      } else {
        next.push_back(&item);
      }
    }
    return types;
  }
  return JsonType::kAny;
}

// The types of all that a schema leads to, each looked at once, so that references may go round.
JsonTypes types_of_schema(const Json& root, const Json& schema) {
  JsonTypes types = 0;
  std::set<const Json*> seen;
  std::vector<const Json*> next = {&schema};
  while (!next.empty() && types != JsonType::kAny) {
    const Json* at = next.back();
    next.pop_back();
    if (!seen.insert(at).second) continue;
    if (seen.size() > kMaxSchemas) return JsonType::kAny;
    types |= types_here(root, *at, next);
  }
  return types == 0 ? JsonType::kAny : types;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_call_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_call_space(text.back())) text.remove_suffix(1);
  return text;
}

// The type of a text that is JSON.
JsonTypes type_of_json(std::string_view text) {
  switch (text.front()) {
    case '"': return JsonType::kString;
    case 't':
    case 'f': return JsonType::kBoolean;
    case 'n': return JsonType::kNull;
    case '{': return JsonType::kObject;
    case '[': return JsonType::kArray;
    default: return JsonType::kNumber;
  }
}

}  // namespace

JsonTypes json_type_of(const Json& value) {
  if (value.is_string()) return JsonType::kString;
  if (value.is_number()) return JsonType::kNumber;
  if (value.is_boolean()) return JsonType::kBoolean;
  if (value.is_null()) return JsonType::kNull;
  return value.is_object() ? JsonType::kObject : JsonType::kArray;
}

JsonTypes find_argument_types(const Tool* tool, std::string_view key) {
  if (tool == nullptr) return JsonType::kString;
  const Json* properties = find_member(tool->parameters, "properties");
  if (properties == nullptr) return JsonType::kString;
  const Json* schema = find_member(*properties, std::string(key).c_str());
  return schema == nullptr ? JsonType::kString : types_of_schema(tool->parameters, *schema);
}

std::string xml_text_to_json(std::string_view text, JsonTypes types) {
  const std::string_view literal = trim(text);
  if (types != JsonType::kString && !literal.empty()) {
    const std::string json = parse_json(literal).ok() ? std::string(literal) : python_to_json(literal);
    if (!json.empty() && (type_of_json(json) & types) != 0) return json;
  }
  return to_json_string(text);
}

void XmlArguments::open(const Tool* tool, CallEvents& events) {
  tool_ = tool;
  first_ = true;
  events.arguments("{");
}

void XmlArguments::begin_value(std::string_view key, CallEvents& events) {
  begin_value(key, events, find_argument_types(tool_, key));
}

void XmlArguments::begin_value(std::string_view key, CallEvents& events, JsonTypes types) {
  events.arguments((first_ ? "" : ",") + to_json_string(key) + ":");
  first_ = false;
  types_ = types;
  is_string_ = types_ == JsonType::kString;
  if (is_string_) events.arguments("\"");
}

void XmlArguments::add_string(std::string_view text, CallEvents& events) {
  std::string escaped;
  for (const char c : text) add_json_char(escaped, c);
  events.arguments(escaped);
}

void XmlArguments::value(std::string_view text, CallEvents& events) {
  if (is_string_) {
    add_string(text, events);
    return;
  }
  collected_ += text;
  if (collected_.size() <= CallLimits::kMaxHeldBytes) return;
  is_string_ = true;
  events.arguments("\"");
  add_string(std::exchange(collected_, {}), events);
}

void XmlArguments::end_value(CallEvents& events) {
  events.arguments(is_string_ ? "\"" : xml_text_to_json(collected_, types_));
  collected_.clear();
}

void XmlArguments::close(CallEvents& events) {
  events.arguments("}");
  events.end();
}

void XmlArguments::finish(CallEvents& events) { events.arguments(std::exchange(collected_, {})); }

}  // namespace ebb
