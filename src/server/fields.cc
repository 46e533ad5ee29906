#include "server/fields.h"

#include <algorithm>
#include <cmath>

namespace ebb {
namespace {

const char* type_name(const Json& value) {
  if (value.is_string()) return "a string";
  if (value.is_boolean()) return "a boolean";
  if (value.is_number()) return "a number";
  if (value.is_array()) return "an array";
  return "an object";
}

}  // namespace

Fields::Fields(const Json& object) : object_(object) {
  if (!object.is_object()) refuse("the body must be a JSON object");
}

const Json* Fields::find(std::string_view name) const {
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void Fields::refuse(std::string message) {
  if (status_.ok()) status_ = Status(Code::kInvalidArgument, std::move(message));
}

bool Fields::boolean(std::string_view name, bool otherwise) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  refuse(fmt::format("Field '{}': must be true or false, but got {}", name, type_name(*value)));
  return otherwise;
}

std::string Fields::text(std::string_view name, std::string otherwise) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_string()) return value->get<std::string>();
  refuse(fmt::format("Field '{}': must be a string, but got {}", name, type_name(*value)));
  return otherwise;
}

std::vector<std::string> Fields::texts(std::string_view name, std::size_t most) {
  const Json* value = find(name);
  if (value == nullptr) return {};
  const auto is_string = [](const Json& one) { return one.is_string(); };
  if (value->is_array() && value->size() <= most && std::ranges::all_of(*value, is_string)) {
    return value->get<std::vector<std::string>>();
  }
  refuse(fmt::format("Field '{}': must be an array of up to {} strings", name, most));
  return {};
}

std::int64_t Fields::integer(std::string_view name, std::int64_t otherwise, std::int64_t least, std::int64_t most) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  const bool is_whole = value->is_number_integer() ||
                        (value->is_number_float() && std::trunc(value->get<double>()) == value->get<double>());
  if (!is_whole) {
    refuse(fmt::format("Field '{}': must be an integer, but got {}", name,
                       value->is_number() ? value->dump() : type_name(*value)));
    return otherwise;
  }
  const auto given = value->get<double>();
  if (given < static_cast<double>(least) || given > static_cast<double>(most)) {
    refuse(fmt::format("Field '{}': Value must be between {} <= value <= {}, but got {}", name, least, most,
                       value->dump()));
    return otherwise;
  }
  return value->is_number_float() ? static_cast<std::int64_t>(given) : value->get<std::int64_t>();
}

float Fields::number(std::string_view name, float otherwise, float least, float most) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_number()) {
    refuse(fmt::format("Field '{}': must be a number, but got {}", name, type_name(*value)));
    return otherwise;
  }
  return static_cast<float>(std::clamp(value->get<double>(), static_cast<double>(least), static_cast<double>(most)));
}

std::string text_member(const Json& json, std::string_view name) {
  const auto member = json.find(name);
  return member != json.end() && member->is_string() ? member->get<std::string>() : std::string();
}

}  // namespace ebb
