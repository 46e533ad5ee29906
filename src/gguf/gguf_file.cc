#include "gguf/gguf_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace ebb {

namespace {

bool is_integer(gguf_type type) {
  switch (type) {
    case GGUF_TYPE_UINT8:
    case GGUF_TYPE_INT8:
    case GGUF_TYPE_UINT16:
    case GGUF_TYPE_INT16:
    case GGUF_TYPE_UINT32:
    case GGUF_TYPE_INT32:
    case GGUF_TYPE_UINT64:
    case GGUF_TYPE_INT64: return true;
    default: return false;
  }
}

template <class T>
T element(const GgufValue& value, std::size_t index) {
  T result;
  std::memcpy(&result, value.bytes.data() + index * sizeof(T), sizeof(T));
  return result;
}

// An element of an integer or bool value; u64 values past 2^63 are cut to it, which every range check refuses.
std::int64_t int_element(const GgufValue& value, std::size_t i) {
  switch (value.type) {
    case GGUF_TYPE_UINT8: return element<std::uint8_t>(value, i);
    case GGUF_TYPE_INT8: return element<std::int8_t>(value, i);
    case GGUF_TYPE_BOOL: return element<std::int8_t>(value, i) != 0 ? 1 : 0;
    case GGUF_TYPE_UINT16: return element<std::uint16_t>(value, i);
    case GGUF_TYPE_INT16: return element<std::int16_t>(value, i);
    case GGUF_TYPE_UINT32: return element<std::uint32_t>(value, i);
    case GGUF_TYPE_INT32: return element<std::int32_t>(value, i);
    case GGUF_TYPE_INT64: return element<std::int64_t>(value, i);
    default:
      return static_cast<std::int64_t>(std::min<std::uint64_t>(
          element<std::uint64_t>(value, i), static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())));
  }
}

// The walk over the header has checked that lengths and bytes lie inside the value.
std::vector<std::string_view> string_elements(const GgufValue& value) {
  std::vector<std::string_view> texts(value.n);
  const std::byte* at = value.bytes.data();
  for (std::string_view& text : texts) {
    std::uint64_t length = 0;
    std::memcpy(&length, at, sizeof length);
    at += sizeof length;
    text = {reinterpret_cast<const char*>(at), static_cast<std::size_t>(length)};
    at += length;
  }
  return texts;
}

}  // namespace

GgufFile::GgufFile(MappedFile mapping, GgufHeader header) : mapping_(std::move(mapping)), header_(std::move(header)) {
  for (std::size_t i = 0; i < header_.tensors.size(); ++i) tensor_by_name_.emplace(header_.tensors[i].name, i);
}

Result<GgufFile> GgufFile::open(const std::filesystem::path& path) {
  EBB_ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::open(path));
  EBB_ASSIGN_OR_RETURN(GgufHeader header, read_gguf_header(mapping.bytes(), path.string()));
  GgufFile file(std::move(mapping), std::move(header));
  EBB_RETURN_IF_ERROR(file.refuse_parts());
  return file;
}

Status GgufFile::refuse_parts() const {
  EBB_ASSIGN_OR_RETURN(const std::optional<std::int64_t> n_parts, find_int("split.count"));
  if (n_parts.value_or(0) <= 1) return {};
  EBB_ASSIGN_OR_RETURN(const std::optional<std::int64_t> part, find_int("split.no"));
  return error(Code::kUnsupported,
               "{}: is part {} of {} of a split model; join them first: llama-gguf-split --merge FIRST_PART OUTPUT",
               name(), part.value_or(0) + 1, *n_parts);
}

const GgufValue* GgufFile::find_value(const std::string& key) const {
  const auto found = header_.values.find(key);
  return found == header_.values.end() ? nullptr : &found->second;
}

Status GgufFile::wrong_type(const std::string& key, std::string_view expected) const {
  const GgufValue& value = *find_value(key);
  return error(Code::kDamaged, "{}: key '{}' holds {}{}, not {}; convert the model again", name(), printable(key),
               value.is_array ? "an array of " : "", gguf_type_name(value.type), expected);
}

Result<std::optional<std::int64_t>> GgufFile::find_int(const std::string& key) const {
  const GgufValue* value = find_value(key);
  if (value == nullptr) return std::optional<std::int64_t>();
  if (value->is_array || !is_integer(value->type)) return wrong_type(key, "an integer");
  return std::optional<std::int64_t>(int_element(*value, 0));
}

Result<std::optional<double>> GgufFile::find_float(const std::string& key) const {
  const GgufValue* value = find_value(key);
  if (value == nullptr) return std::optional<double>();
  const bool is_single = value->type == GGUF_TYPE_FLOAT32;
  if (value->is_array || (!is_single && value->type != GGUF_TYPE_FLOAT64)) return wrong_type(key, "a number");
  const double number = is_single ? static_cast<double>(element<float>(*value, 0)) : element<double>(*value, 0);
  if (!std::isfinite(number)) {
    return error(Code::kDamaged, "{}: key '{}' is not finite; convert the model again", name(), printable(key));
  }
  return std::optional<double>(number);
}

Result<std::optional<bool>> GgufFile::find_bool(const std::string& key) const {
  const GgufValue* value = find_value(key);
  if (value == nullptr) return std::optional<bool>();
  if (value->is_array || value->type != GGUF_TYPE_BOOL) return wrong_type(key, "a bool");
  return std::optional<bool>(int_element(*value, 0) != 0);
}

Result<std::optional<std::string>> GgufFile::find_string(const std::string& key) const {
  const GgufValue* value = find_value(key);
  if (value == nullptr) return std::optional<std::string>();
  if (value->is_array || value->type != GGUF_TYPE_STRING) return wrong_type(key, "a string");
  const std::string_view text = string_elements(*value).front();
  return std::optional<std::string>(text.substr(0, text.find('\0')));
}

Result<std::optional<std::vector<std::string_view>>> GgufFile::find_strings(const std::string& key) const {
  using Texts = std::vector<std::string_view>;
  const GgufValue* value = find_value(key);
  if (value == nullptr) return std::optional<Texts>();
  if (!value->is_array || value->type != GGUF_TYPE_STRING) return wrong_type(key, "strings");
  return std::optional<Texts>(string_elements(*value));
}

Result<std::optional<std::vector<std::int64_t>>> GgufFile::find_ints(const std::string& key) const {
  using Values = std::vector<std::int64_t>;
  const GgufValue* value = find_value(key);
  if (value == nullptr) return std::optional<Values>();
  if (!is_integer(value->type) && value->type != GGUF_TYPE_BOOL) return wrong_type(key, "integers");
  Values values(value->n);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = int_element(*value, i);
  return std::optional<Values>(std::move(values));
}

bool GgufFile::is_array(const std::string& key) const {
  const GgufValue* value = find_value(key);
  return value != nullptr && value->is_array;
}

std::optional<std::size_t> GgufFile::find_array_length(const std::string& key) const {
  if (!is_array(key)) return std::nullopt;
  return find_value(key)->n;
}

const TensorInfo* GgufFile::find_tensor(const std::string& name) const {
  const auto found = tensor_by_name_.find(name);
  return found == tensor_by_name_.end() ? nullptr : &header_.tensors[found->second];
}

std::span<const std::byte> GgufFile::bytes_of(const TensorInfo& tensor) const {
  return mapping_.bytes().subspan(tensor.file_offset, tensor.n_bytes);
}

std::int64_t GgufFile::n_parameters() const {
  std::int64_t sum = 0;
  for (const TensorInfo& tensor : header_.tensors) sum += tensor.n_elements();
  return sum;
}

std::size_t GgufFile::n_tensor_bytes() const {
  std::size_t sum = 0;
  for (const TensorInfo& tensor : header_.tensors) sum += tensor.n_bytes;
  return sum;
}

}  // namespace ebb
