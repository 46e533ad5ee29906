#include "json/json_fields.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace ebb {
namespace {

const char* type_name(const Json& value) {
  if (value.is_string()) return "a string";
  if (value.is_boolean()) return "a boolean";
  if (value.is_number()) return "a number";
  if (value.is_array()) return "an array";
  if (value.is_null()) return "null";
  return "an object";
}

bool is_whole(const Json& value) {
  if (value.is_number_float()) return std::trunc(value.get<double>()) == value.get<double>();
  return value.is_number_integer();
}

// The value of a whole number; nothing where it has no room.
std::optional<std::int64_t> as_int64(const Json& value) {
  if (value.is_number_float()) {
    const auto given = value.get<double>();
    return given >= -0x1p63 && given < 0x1p63 ? std::optional(static_cast<std::int64_t>(given)) : std::nullopt;
  }
  const bool fits = !value.is_number_unsigned() || std::in_range<std::int64_t>(value.get<std::uint64_t>());
  return fits ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> integer_between(const Json& value, std::int64_t least, std::int64_t most) {
  const std::optional<std::int64_t> given = is_whole(value) ? as_int64(value) : std::nullopt;
  return given && least <= *given && *given <= most ? given : std::nullopt;
}

JsonFields::JsonFields(const Json& object, std::string path)
    : JsonFields(object, std::move(path), std::make_shared<Status>()) {}

JsonFields::JsonFields(const Json& object, std::string path, std::shared_ptr<Status> status)
    : object_(&object), path_(std::move(path)), status_(std::move(status)) {
  if (object.is_object()) return;
  refuse_whole(path_.empty() ? "the body must be a JSON object"
                             : fmt::format("Field '{}': must be an object, but got {}", path_, type_name(object)));
}

std::string JsonFields::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

const Json* JsonFields::find(std::string_view name) const {
  if (!object_->is_object()) return nullptr;
  const auto found = object_->find(name);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::refuse_whole(std::string message) {
  if (status_->ok()) *status_ = Status(Code::kInvalidArgument, std::move(message));
}

void JsonFields::refuse_others(std::span<const std::string_view> names) {
  if (!object_->is_object()) return;
  for (const auto& [name, value] : object_->items()) {
    if (std::ranges::find(names, name) != names.end()) continue;
    // What a stranger wrote is repeated up to a length.
    refuse(name.substr(0, 64), fmt::format("is not known here; there are {}", fmt::join(names, ", ")));
  }
}

void JsonFields::refuse(std::string_view name, std::string_view what) {
  refuse_whole(fmt::format("Field '{}': {}", path_of(name), what));
}

void JsonFields::refuse_type(std::string_view name, std::string_view expected) {
  const Json* value = find(name);
  refuse(name, value == nullptr ? fmt::format("must be {}", expected)
                                : fmt::format("must be {}, but got {}", expected, type_name(*value)));
}

bool JsonFields::boolean(std::string_view name, bool otherwise) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  refuse_type(name, "true or false");
  return otherwise;
}

std::string JsonFields::text(std::string_view name, std::string otherwise) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_string()) return value->get<std::string>();
  refuse_type(name, "a string");
  return otherwise;
}

std::string JsonFields::needed_text(std::string_view name) {
  if (find(name) == nullptr) refuse_type(name, "a string");
  return text(name);
}

std::vector<std::string> JsonFields::texts(std::string_view name, std::size_t most) {
  const Json* value = find(name);
  if (value == nullptr) return {};
  const auto is_string = [](const Json& one) { return one.is_string(); };
  if (value->is_array() && value->size() <= most && std::ranges::all_of(*value, is_string)) {
    return value->get<std::vector<std::string>>();
  }
  refuse(name, fmt::format("must be an array of up to {} strings", most));
  return {};
}

std::int64_t JsonFields::integer(std::string_view name, std::int64_t otherwise, std::int64_t least, std::int64_t most) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (const auto given = integer_between(*value, least, most)) return *given;
  if (is_whole(*value)) {
    refuse(name, fmt::format("Value must be between {} <= value <= {}, but got {}", least, most, value->dump()));
  } else if (value->is_number()) {
    refuse(name, fmt::format("must be an integer, but got {}", value->dump()));
  } else {
    refuse_type(name, "an integer");
  }
  return otherwise;
}

float JsonFields::number(std::string_view name, float otherwise, float least, float most) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_number()) {
    refuse_type(name, "a number");
    return otherwise;
  }
  return static_cast<float>(std::clamp(value->get<double>(), static_cast<double>(least), static_cast<double>(most)));
}

std::optional<JsonFields> JsonFields::object(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  JsonFields inside(*value, path_of(name), status_);
  return value->is_object() ? std::optional(std::move(inside)) : std::nullopt;
}

std::optional<JsonFields> JsonFields::needed_object(std::string_view name) {
  if (find(name) == nullptr) refuse_type(name, "an object");
  return object(name);
}

std::vector<JsonFields> JsonFields::objects(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr) return {};
  if (!value->is_array()) {
    refuse_type(name, "an array of objects");
    return {};
  }
  std::vector<JsonFields> readers;
  readers.reserve(value->size());
  for (std::size_t i = 0; i < value->size(); ++i) {
    readers.push_back(JsonFields((*value)[i], fmt::format("{}[{}]", path_of(name), i), status_));
  }
  return readers;
}

std::string text_member(const Json& json, std::string_view name) {
  const auto member = json.find(name);
  return member != json.end() && member->is_string() ? member->get<std::string>() : std::string();
}

}  // namespace ebb
