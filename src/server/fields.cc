#include "server/fields.h"

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
  return "an object";
}

// Of a whole number; nothing where it has no room.
std::optional<std::int64_t> as_int64(const Json& value) {
  if (value.is_number_float()) {
    const auto given = value.get<double>();
    return given >= -0x1p63 && given < 0x1p63 ? std::optional(static_cast<std::int64_t>(given)) : std::nullopt;
  }
  const bool fits = !value.is_number_unsigned() || std::in_range<std::int64_t>(value.get<std::uint64_t>());
  return fits ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

}  // namespace

Fields::Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (object.is_object()) return;
  refuse(path_.empty() ? "the body must be a JSON object"
                       : fmt::format("Field '{}': must be an object, but got {}", path_, type_name(object)));
}

std::string Fields::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

const Json* Fields::find(std::string_view name) const {
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void Fields::refuse(std::string message) {
  if (status_.ok()) status_ = Status(Code::kInvalidArgument, std::move(message));
}

void Fields::refuse_as(const Fields& inner) {
  if (!inner.status().ok()) refuse(inner.status().message());
}

bool Fields::boolean(std::string_view name, bool otherwise) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  refuse(fmt::format("Field '{}': must be true or false, but got {}", path_of(name), type_name(*value)));
  return otherwise;
}

std::string Fields::text(std::string_view name, std::string otherwise) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_string()) return value->get<std::string>();
  refuse(fmt::format("Field '{}': must be a string, but got {}", path_of(name), type_name(*value)));
  return otherwise;
}

std::vector<std::string> Fields::texts(std::string_view name, std::size_t most) {
  const Json* value = find(name);
  if (value == nullptr) return {};
  const auto is_string = [](const Json& one) { return one.is_string(); };
  if (value->is_array() && value->size() <= most && std::ranges::all_of(*value, is_string)) {
    return value->get<std::vector<std::string>>();
  }
  refuse(fmt::format("Field '{}': must be an array of up to {} strings", path_of(name), most));
  return {};
}

std::int64_t Fields::integer(std::string_view name, std::int64_t otherwise, std::int64_t least, std::int64_t most) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  const bool is_whole = value->is_number_integer() ||
                        (value->is_number_float() && std::trunc(value->get<double>()) == value->get<double>());
  if (!is_whole) {
    refuse(fmt::format("Field '{}': must be an integer, but got {}", path_of(name),
                       value->is_number() ? value->dump() : type_name(*value)));
    return otherwise;
  }
  const std::optional<std::int64_t> given = as_int64(*value);
  if (!given || *given < least || *given > most) {
    refuse(fmt::format("Field '{}': Value must be between {} <= value <= {}, but got {}", path_of(name), least, most,
                       value->dump()));
    return otherwise;
  }
  return *given;
}

float Fields::number(std::string_view name, float otherwise, float least, float most) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_number()) {
    refuse(fmt::format("Field '{}': must be a number, but got {}", path_of(name), type_name(*value)));
    return otherwise;
  }
  return static_cast<float>(std::clamp(value->get<double>(), static_cast<double>(least), static_cast<double>(most)));
}

std::string text_member(const Json& json, std::string_view name) {
  const auto member = json.find(name);
  return member != json.end() && member->is_string() ? member->get<std::string>() : std::string();
}

}  // namespace ebb
