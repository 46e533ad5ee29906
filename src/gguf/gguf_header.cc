#include "gguf/gguf_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <unordered_set>
#include <utility>

namespace ebb {

namespace {

// Products of dimensions and sums of offsets stay below, so that they cannot overflow.
constexpr std::uint64_t kMaxElements = 1ULL << 48U;

std::uint64_t scalar_bytes(std::uint32_t type) {
  switch (type) {
    case GGUF_TYPE_UINT8:
    case GGUF_TYPE_INT8:
    case GGUF_TYPE_BOOL: return 1;
    case GGUF_TYPE_UINT16:
    case GGUF_TYPE_INT16: return 2;
    case GGUF_TYPE_UINT32:
    case GGUF_TYPE_INT32:
    case GGUF_TYPE_FLOAT32: return 4;
    case GGUF_TYPE_UINT64:
    case GGUF_TYPE_INT64:
    case GGUF_TYPE_FLOAT64: return 8;
    default: return 0;  // strings, arrays and what does not exist
  }
}

class HeaderWalk {
 public:
  HeaderWalk(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  Result<GgufHeader> walk() {
    EBB_RETURN_IF_ERROR(walk_preamble());
    for (std::uint64_t i = 0; i < n_keys_; ++i) EBB_RETURN_IF_ERROR(walk_key());
    for (std::uint64_t i = 0; i < n_tensors_; ++i) EBB_RETURN_IF_ERROR(walk_tensor(i));
    EBB_RETURN_IF_ERROR(place_tensors());
    return std::move(header_);
  }

 private:
  template <class... Args>
  [[nodiscard]] Status damaged(fmt::format_string<Args...> format, Args&&... args) const {
    return error(Code::kDamaged, "{}: damaged GGUF file: {}; download or convert it again", file_,
                 fmt::format(format, std::forward<Args>(args)...));
  }

  [[nodiscard]] std::uint64_t n_left() const { return bytes_.size() - at_; }

  template <class T>
  Status read(T& value) {
    if (n_left() < sizeof(T)) return damaged("it ends inside its header, at byte {}", bytes_.size());
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return {};
  }

  Status skip(std::uint64_t n_bytes, std::string_view what) {
    if (n_left() < n_bytes) {
      return damaged("{} needs {} bytes where {} are left", what, n_bytes, n_left());
    }
    at_ += n_bytes;
    return {};
  }

  Status read_string(std::string_view& text) {
    std::uint64_t length = 0;
    EBB_RETURN_IF_ERROR(read(length));
    if (length > kMaxGgufStringBytes) return damaged("a string of {} bytes (at most {})", length, kMaxGgufStringBytes);
    const std::size_t begin = at_;
    EBB_RETURN_IF_ERROR(skip(length, "a string"));
    text = {reinterpret_cast<const char*>(bytes_.data() + begin), static_cast<std::size_t>(length)};
    return {};
  }

  // A name that C code will read as such.
  Status read_name(std::string_view& name, std::string_view kind) {
    EBB_RETURN_IF_ERROR(read_string(name));
    if (name.empty()) return damaged("a {} without a name", kind);
    if (name.find('\0') != std::string_view::npos)
      return damaged("{} '{}' has a zero in its name", kind, printable(name));
    return {};
  }

  Status walk_preamble();
  Status walk_key();
  Status walk_array_head(std::string_view key, std::uint32_t& type, std::uint64_t& n_elements);
  Status walk_elements(std::string_view key, std::uint32_t type, std::uint64_t n_elements);
  Status take_alignment(const GgufValue& value);
  Status walk_tensor(std::uint64_t index);
  Status walk_shape(std::string_view name, std::array<std::int64_t, GGML_MAX_DIMS>& shape);
  Status place_tensors();

  std::span<const std::byte> bytes_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::uint64_t n_keys_ = 0;
  std::uint64_t n_tensors_ = 0;
  std::uint64_t n_elements_left_ = kMaxGgufArrayElements;
  std::uint64_t alignment_ = GGUF_DEFAULT_ALIGNMENT;
  std::uint64_t data_end_ = 0;   // of the tensors so far, padded, from the start of the data
  std::uint64_t data_used_ = 0;  // the same without the last padding, which may be missing
  std::unordered_set<std::string_view> tensor_names_;
  GgufHeader header_;
};

Status HeaderWalk::walk_preamble() {
  if (bytes_.size() < 4 || std::memcmp(bytes_.data(), GGUF_MAGIC, 4) != 0) {
    return error(Code::kDamaged, "{}: is not a GGUF file (it does not begin with \"GGUF\"); give a .gguf model", file_);
  }
  at_ = 4;
  std::uint32_t version = 0;
  EBB_RETURN_IF_ERROR(read(version));
  if (version != 0 && (version & 0xFFFFU) == 0) {
    return error(Code::kUnsupported, "{}: is written for the other byte order; convert it for this machine", file_);
  }
  if (version < 2 || version > GGUF_VERSION) {
    return error(Code::kUnsupported,
                 "{}: GGUF version {} is not supported (2 and {} are); convert it with a current tool", file_, version,
                 GGUF_VERSION);
  }
  EBB_RETURN_IF_ERROR(read(n_tensors_));
  EBB_RETURN_IF_ERROR(read(n_keys_));
  if (n_tensors_ > kMaxGgufTensors) return damaged("it claims {} tensors (at most {})", n_tensors_, kMaxGgufTensors);
  if (n_keys_ > kMaxGgufKeys) return damaged("it claims {} keys (at most {})", n_keys_, kMaxGgufKeys);
  return {};
}

Status HeaderWalk::walk_key() {
  std::string_view key;
  EBB_RETURN_IF_ERROR(read_name(key, "key"));
  if (header_.values.contains(key)) return damaged("key '{}' appears twice", printable(key));
  std::uint32_t type = 0;
  std::uint64_t n_elements = 1;
  EBB_RETURN_IF_ERROR(read(type));
  const bool is_array = type == GGUF_TYPE_ARRAY;
  if (is_array) EBB_RETURN_IF_ERROR(walk_array_head(key, type, n_elements));
  const std::size_t begin = at_;
  EBB_RETURN_IF_ERROR(walk_elements(key, type, n_elements));
  const GgufValue value{.type = static_cast<gguf_type>(type),
                        .is_array = is_array,
                        .n = static_cast<std::size_t>(n_elements),
                        .bytes = bytes_.subspan(begin, at_ - begin)};
  header_.values.emplace(key, value);
  return key == GGUF_KEY_GENERAL_ALIGNMENT ? take_alignment(value) : Status();
}

Status HeaderWalk::walk_array_head(std::string_view key, std::uint32_t& type, std::uint64_t& n_elements) {
  EBB_RETURN_IF_ERROR(read(type));
  EBB_RETURN_IF_ERROR(read(n_elements));
  if (n_elements > n_elements_left_) {
    return damaged("the array '{}' claims {} elements (at most {} over all arrays)", printable(key), n_elements,
                   kMaxGgufArrayElements);
  }
  n_elements_left_ -= n_elements;
  return {};
}

Status HeaderWalk::walk_elements(std::string_view key, std::uint32_t type, std::uint64_t n_elements) {
  if (type == GGUF_TYPE_STRING) {
    std::string_view text;
    for (std::uint64_t i = 0; i < n_elements; ++i) EBB_RETURN_IF_ERROR(read_string(text));
    return {};
  }
  const std::uint64_t n_bytes = scalar_bytes(type);
  if (n_bytes == 0) return damaged("key '{}' holds the unknown type {}", printable(key), type);
  return skip(n_bytes * n_elements, "a key's value");
}

Status HeaderWalk::take_alignment(const GgufValue& value) {
  if (value.is_array || value.type != GGUF_TYPE_UINT32)
    return damaged("key '{}' is no u32", GGUF_KEY_GENERAL_ALIGNMENT);
  std::uint32_t alignment = 0;
  std::memcpy(&alignment, value.bytes.data(), sizeof alignment);
  // Below 8, floats would lie across their own size; above a page, nobody gains.
  if (!std::has_single_bit(alignment) || alignment < 8 || alignment > (1U << 16U)) {
    return damaged("an alignment of {} (a power of two, 8 to 65536)", alignment);
  }
  alignment_ = alignment;
  return {};
}

Status HeaderWalk::walk_shape(std::string_view name, std::array<std::int64_t, GGML_MAX_DIMS>& shape) {
  std::uint32_t n_dims = 0;
  EBB_RETURN_IF_ERROR(read(n_dims));
  if (n_dims < 1 || n_dims > GGML_MAX_DIMS) {
    return damaged("tensor '{}' has {} dimensions (1 to {})", printable(name), n_dims, GGML_MAX_DIMS);
  }
  std::uint64_t n_elements = 1;
  for (std::uint32_t i = 0; i < n_dims; ++i) {
    std::uint64_t size = 0;
    EBB_RETURN_IF_ERROR(read(size));
    if (size < 1 || size > kMaxElements / n_elements) {
      return damaged("tensor '{}' has the impossible size {} in dimension {}", printable(name), size, i);
    }
    n_elements *= size;
    shape[i] = static_cast<std::int64_t>(size);
  }
  return {};
}

Status HeaderWalk::walk_tensor(std::uint64_t index) {
  std::string_view name;
  EBB_RETURN_IF_ERROR(read_name(name, "tensor"));
  if (name.size() >= GGML_MAX_NAME) return damaged("tensor {} has a name of {} bytes", index, name.size());
  if (!tensor_names_.insert(name).second) return damaged("tensor '{}' appears twice", printable(name));

  TensorInfo tensor{.name = std::string(name)};
  EBB_RETURN_IF_ERROR(walk_shape(name, tensor.shape));
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
  EBB_RETURN_IF_ERROR(read(type));
  EBB_RETURN_IF_ERROR(read(offset));
  const bool is_type = type < GGML_TYPE_COUNT && ggml_blck_size(static_cast<ggml_type>(type)) > 0 &&
                       ggml_type_size(static_cast<ggml_type>(type)) > 0;
  if (!is_type) {
    return error(Code::kUnsupported, "{}: tensor '{}' has type {}, which ggml does not know; convert it again", file_,
                 printable(name), type);
  }
  tensor.type = static_cast<ggml_type>(type);
  const std::int64_t block = ggml_blck_size(tensor.type);
  if (tensor.shape[0] % block != 0) {
    return damaged("tensor '{}' has rows of {}, which blocks of {} do not divide", printable(name), tensor.shape[0],
                   block);
  }
  if (offset != data_end_) {
    return damaged("tensor '{}' begins at {} where {} was expected", printable(name), offset, data_end_);
  }
  // At most 2^48 elements of at most 2^16 bytes each: no overflow, and sums are checked against the file at once.
  tensor.n_bytes = static_cast<std::size_t>(tensor.n_elements() / block) * ggml_type_size(tensor.type);
  tensor.file_offset = data_end_;
  data_used_ = data_end_ + tensor.n_bytes;
  data_end_ = (data_used_ + alignment_ - 1) / alignment_ * alignment_;
  if (data_used_ > bytes_.size()) {
    return damaged("it is cut short: tensor '{}' ends {} bytes into the tensors, the whole file has {}",
                   printable(name), data_used_, bytes_.size());
  }
  header_.tensors.push_back(std::move(tensor));
  return {};
}

// Offsets count from the start of the tensors' bytes, which is known only behind the table.
Status HeaderWalk::place_tensors() {
  const std::uint64_t data_begin = (at_ + alignment_ - 1) / alignment_ * alignment_;
  if (n_tensors_ > 0 && data_begin + data_used_ > bytes_.size()) {
    return damaged("it is cut short: {} bytes of {}", bytes_.size(), data_begin + data_used_);
  }
  for (TensorInfo& tensor : header_.tensors) tensor.file_offset += data_begin;
  return {};
}

}  // namespace

std::string TensorInfo::shape_text() const {
  int n_dims = GGML_MAX_DIMS;
  while (n_dims > 1 && shape[static_cast<std::size_t>(n_dims - 1)] == 1) --n_dims;
  std::string text = std::to_string(shape[0]);
  for (int i = 1; i < n_dims; ++i) text += " x " + std::to_string(shape[static_cast<std::size_t>(i)]);
  return text;
}

Result<GgufHeader> read_gguf_header(std::span<const std::byte> bytes, const std::string& file) {
  return HeaderWalk(bytes, file).walk();
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMaxLength = 64;
  std::string result(text.substr(0, kMaxLength));
  for (char& c : result) {
    if (c < 0x20 || c > 0x7E) c = '?';
  }
  if (text.size() > kMaxLength) result += "...";
  return result;
}

}  // namespace ebb
