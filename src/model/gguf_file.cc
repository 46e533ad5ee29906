#include "model/gguf_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "model/gguf_scan.h"

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
T element(const void* data, std::size_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * sizeof(T), sizeof(T));
  return value;
}

// An element of an integer or bool array; u64 values past 2^63 are cut to it, which every range check refuses.
std::int64_t int_element(gguf_type type, const void* data, std::size_t i) {
  switch (type) {
    case GGUF_TYPE_UINT8: return element<std::uint8_t>(data, i);
    case GGUF_TYPE_INT8: return element<std::int8_t>(data, i);
    case GGUF_TYPE_BOOL: return element<std::int8_t>(data, i) != 0 ? 1 : 0;
    case GGUF_TYPE_UINT16: return element<std::uint16_t>(data, i);
    case GGUF_TYPE_INT16: return element<std::int16_t>(data, i);
    case GGUF_TYPE_UINT32: return element<std::uint32_t>(data, i);
    case GGUF_TYPE_INT32: return element<std::int32_t>(data, i);
    case GGUF_TYPE_INT64: return element<std::int64_t>(data, i);
    default: {
      const auto value = element<std::uint64_t>(data, i);
      return static_cast<std::int64_t>(
          std::min<std::uint64_t>(value, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())));
    }
  }
}

}  // namespace

std::string TensorInfo::shape_text() const {
  int n_dims = GGML_MAX_DIMS;
  while (n_dims > 1 && shape[static_cast<std::size_t>(n_dims - 1)] == 1) --n_dims;
  std::string text = std::to_string(shape[0]);
  for (int i = 1; i < n_dims; ++i) text += " x " + std::to_string(shape[static_cast<std::size_t>(i)]);
  return text;
}

Result<GgufFile> GgufFile::open(const std::filesystem::path& path) {
  EBB_ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::open(path));
  GgufFile file(std::move(mapping));
  EBB_RETURN_IF_ERROR(scan_gguf(file.mapping_.bytes(), file.name()));
  const std::span<const std::byte> bytes = file.mapping_.bytes();
  file.gguf_.reset(gguf_init_from_buffer(bytes.data(), bytes.size(), {.no_alloc = true, .ctx = nullptr}));
  if (file.gguf_ == nullptr) {
    return error(Code::kDamaged, "{}: damaged GGUF file: ggml refuses its header; download or convert it again",
                 file.name());
  }
  EBB_RETURN_IF_ERROR(file.refuse_parts());
  EBB_RETURN_IF_ERROR(file.read_tensor_table());
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

Status GgufFile::read_tensor_table() {
  const std::size_t data_offset = gguf_get_data_offset(gguf_.get());
  const std::int64_t n_tensors = gguf_get_n_tensors(gguf_.get());
  tensors_.reserve(static_cast<std::size_t>(n_tensors));
  for (std::int64_t i = 0; i < n_tensors; ++i) {
    TensorInfo info{.name = gguf_get_tensor_name(gguf_.get(), i),
                    .type = gguf_get_tensor_type(gguf_.get(), i),
                    .file_offset = data_offset + gguf_get_tensor_offset(gguf_.get(), i),
                    .n_bytes = gguf_get_tensor_size(gguf_.get(), i)};
    std::copy_n(gguf_get_tensor_ne(gguf_.get(), i), GGML_MAX_DIMS, info.shape.begin());
    // The walk and gguf.h agree on what lies where, or nothing may be read.
    if (info.file_offset + info.n_bytes > mapping_.bytes().size()) {
      return error(Code::kDamaged, "{}: damaged GGUF file: tensor '{}' does not lie inside it; download it again",
                   name(), printable(info.name));
    }
    tensor_by_name_.emplace(info.name, tensors_.size());
    tensors_.push_back(std::move(info));
  }
  return {};
}

std::int64_t GgufFile::find_key(const std::string& key) const { return gguf_find_key(gguf_.get(), key.c_str()); }

Status GgufFile::wrong_type(const std::string& key, std::string_view expected) const {
  const std::int64_t id = find_key(key);
  gguf_type type = gguf_get_kv_type(gguf_.get(), id);
  const bool array = type == GGUF_TYPE_ARRAY;
  if (array) type = gguf_get_arr_type(gguf_.get(), id);
  return error(Code::kDamaged, "{}: key '{}' holds {}{}, not {}; convert the model again", name(), printable(key),
               array ? "an array of " : "", gguf_type_name(type), expected);
}

Result<std::optional<std::int64_t>> GgufFile::find_int(const std::string& key) const {
  const std::int64_t id = find_key(key);
  if (id < 0) return std::optional<std::int64_t>();
  const gguf_type type = gguf_get_kv_type(gguf_.get(), id);
  if (!is_integer(type)) return wrong_type(key, "an integer");
  return std::optional<std::int64_t>(int_element(type, gguf_get_val_data(gguf_.get(), id), 0));
}

Result<std::optional<double>> GgufFile::find_float(const std::string& key) const {
  const std::int64_t id = find_key(key);
  if (id < 0) return std::optional<double>();
  const gguf_type type = gguf_get_kv_type(gguf_.get(), id);
  if (type != GGUF_TYPE_FLOAT32 && type != GGUF_TYPE_FLOAT64) return wrong_type(key, "a number");
  const void* data = gguf_get_val_data(gguf_.get(), id);
  const double value =
      type == GGUF_TYPE_FLOAT32 ? static_cast<double>(element<float>(data, 0)) : element<double>(data, 0);
  if (!std::isfinite(value)) {
    return error(Code::kDamaged, "{}: key '{}' is not finite; convert the model again", name(), printable(key));
  }
  return std::optional<double>(value);
}

Result<std::optional<bool>> GgufFile::find_bool(const std::string& key) const {
  const std::int64_t id = find_key(key);
  if (id < 0) return std::optional<bool>();
  if (gguf_get_kv_type(gguf_.get(), id) != GGUF_TYPE_BOOL) return wrong_type(key, "a bool");
  return std::optional<bool>(int_element(GGUF_TYPE_BOOL, gguf_get_val_data(gguf_.get(), id), 0) != 0);
}

Result<std::optional<std::string>> GgufFile::find_string(const std::string& key) const {
  const std::int64_t id = find_key(key);
  if (id < 0) return std::optional<std::string>();
  if (gguf_get_kv_type(gguf_.get(), id) != GGUF_TYPE_STRING) return wrong_type(key, "a string");
  return std::optional<std::string>(gguf_get_val_str(gguf_.get(), id));
}

Result<std::optional<std::vector<std::int64_t>>> GgufFile::find_ints(const std::string& key) const {
  using Values = std::vector<std::int64_t>;
  const std::int64_t id = find_key(key);
  if (id < 0) return std::optional<Values>();
  const bool array = is_array(key);
  const gguf_type type = array ? gguf_get_arr_type(gguf_.get(), id) : gguf_get_kv_type(gguf_.get(), id);
  if (!is_integer(type) && type != GGUF_TYPE_BOOL) return wrong_type(key, "integers");
  const void* data = array ? gguf_get_arr_data(gguf_.get(), id) : gguf_get_val_data(gguf_.get(), id);
  Values values(array ? gguf_get_arr_n(gguf_.get(), id) : 1);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = int_element(type, data, i);
  return std::optional<Values>(std::move(values));
}

bool GgufFile::is_array(const std::string& key) const {
  const std::int64_t id = find_key(key);
  return id >= 0 && gguf_get_kv_type(gguf_.get(), id) == GGUF_TYPE_ARRAY;
}

std::optional<std::size_t> GgufFile::find_array_length(const std::string& key) const {
  if (!is_array(key)) return std::nullopt;
  return gguf_get_arr_n(gguf_.get(), find_key(key));
}

const TensorInfo* GgufFile::find_tensor(const std::string& name) const {
  const auto found = tensor_by_name_.find(name);
  return found == tensor_by_name_.end() ? nullptr : &tensors_[found->second];
}

std::span<const std::byte> GgufFile::bytes_of(const TensorInfo& tensor) const {
  return mapping_.bytes().subspan(tensor.file_offset, tensor.n_bytes);
}

std::int64_t GgufFile::n_parameters() const {
  std::int64_t sum = 0;
  for (const TensorInfo& tensor : tensors_) sum += tensor.n_elements();
  return sum;
}

std::size_t GgufFile::n_tensor_bytes() const {
  std::size_t sum = 0;
  for (const TensorInfo& tensor : tensors_) sum += tensor.n_bytes;
  return sum;
}

}  // namespace ebb
