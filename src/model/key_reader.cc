#include "model/key_reader.h"

#include <algorithm>
#include <vector>

namespace ebb {

Status KeyReader::missing(std::string_view suffix) const {
  return error(Code::kDamaged, "{}: key '{}' is missing; convert the model again", file_.name(), key(suffix));
}

Result<std::int32_t> KeyReader::checked(std::string_view suffix, std::int64_t value, IntRange range) const {
  if (value < range.min || value > range.max) {
    return error(Code::kDamaged, "{}: key '{}' is {} ({} to {} expected); convert the model again", file_.name(),
                 key(suffix), value, range.min, range.max);
  }
  return static_cast<std::int32_t>(value);
}

Result<std::optional<std::int32_t>> KeyReader::find_int(std::string_view suffix, IntRange range) const {
  EBB_ASSIGN_OR_RETURN(const std::optional<std::int64_t> value, file_.find_int(key(suffix)));
  if (!value) return std::optional<std::int32_t>();
  EBB_ASSIGN_OR_RETURN(const std::int32_t in_range, checked(suffix, *value, range));
  return std::optional<std::int32_t>(in_range);
}

Result<std::int32_t> KeyReader::get_int(std::string_view suffix, IntRange range) const {
  EBB_ASSIGN_OR_RETURN(const std::optional<std::int32_t> value, find_int(suffix, range));
  if (!value) return missing(suffix);
  return *value;
}

Result<std::optional<float>> KeyReader::find_float(std::string_view suffix, FloatRange range) const {
  EBB_ASSIGN_OR_RETURN(const std::optional<double> value, file_.find_float(key(suffix)));
  if (!value) return std::optional<float>();
  if (*value < range.min || *value > range.max) {
    return error(Code::kDamaged, "{}: key '{}' is {} ({} to {} expected); convert the model again", file_.name(),
                 key(suffix), *value, range.min, range.max);
  }
  return std::optional<float>(static_cast<float>(*value));
}

Result<float> KeyReader::get_float(std::string_view suffix, FloatRange range) const {
  EBB_ASSIGN_OR_RETURN(const std::optional<float> value, find_float(suffix, range));
  if (!value) return missing(suffix);
  return *value;
}

Result<std::optional<std::int32_t>> KeyReader::find_layer_int(std::string_view suffix, IntRange range,
                                                              std::int32_t n_layers) const {
  if (!file_.is_array(key(suffix))) return find_int(suffix, range);
  EBB_ASSIGN_OR_RETURN(const std::optional<std::vector<std::int64_t>> values, file_.find_ints(key(suffix)));
  if (values->size() != static_cast<std::size_t>(n_layers)) {
    return error(Code::kDamaged, "{}: key '{}' has {} values for {} layers; convert the model again", file_.name(),
                 key(suffix), values->size(), n_layers);
  }
  if (!std::all_of(values->begin(), values->end(), [&](std::int64_t value) { return value == values->front(); })) {
    return error(Code::kUnsupported, "{}: its layers differ in '{}', which ebb does not support; use another model",
                 file_.name(), key(suffix));
  }
  EBB_ASSIGN_OR_RETURN(const std::int32_t in_range, checked(suffix, values->front(), range));
  return std::optional<std::int32_t>(in_range);
}

Status KeyReader::refuse(std::string_view suffix, double neutral) const {
  const auto refused = [&] {
    return error(Code::kUnsupported, "{}: it sets '{}', which ebb does not compute; use another model", file_.name(),
                 key(suffix));
  };
  const Result<std::optional<double>> number = file_.find_float(key(suffix));
  if (number.ok()) {
    const double value = number.value().value_or(neutral);
    return value == 0.0 || value == neutral ? Status() : refused();
  }
  EBB_ASSIGN_OR_RETURN(const std::optional<std::vector<std::int64_t>> values, file_.find_ints(key(suffix)));
  const bool harmless = std::all_of(values->begin(), values->end(), [&](std::int64_t value) {
    return value == 0 || static_cast<double>(value) == neutral;
  });
  return harmless ? Status() : refused();
}

}  // namespace ebb
