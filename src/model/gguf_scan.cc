#include "model/gguf_scan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <unordered_set>

#include "ggml.h"
#include "gguf.h"

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

  Status walk() {
    EBB_RETURN_IF_ERROR(walk_preamble());
    for (std::uint64_t i = 0; i < n_keys_; ++i) EBB_RETURN_IF_ERROR(walk_key());
    for (std::uint64_t i = 0; i < n_tensors_; ++i) EBB_RETURN_IF_ERROR(walk_tensor(i));
    return check_data();
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
  Status walk_array(std::string_view key);
  Status walk_alignment(std::uint32_t type);
  Status walk_tensor(std::uint64_t index);
  Status walk_shape(std::string_view name, std::array<std::uint64_t, GGML_MAX_DIMS>& shape);
  Status check_data() const;

  std::span<const std::byte> bytes_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::uint64_t n_keys_ = 0;
  std::uint64_t n_tensors_ = 0;
  std::uint64_t n_elements_left_ = kMaxGgufArrayElements;
  std::uint64_t alignment_ = GGUF_DEFAULT_ALIGNMENT;
  std::uint64_t data_end_ = 0;   // of the tensors so far, padded, from the start of the data
  std::uint64_t data_used_ = 0;  // the same without the last padding, which may be missing
  std::unordered_set<std::string_view> key_names_;
  std::unordered_set<std::string_view> tensor_names_;
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
  if (!key_names_.insert(key).second) return damaged("key '{}' appears twice", printable(key));
  std::uint32_t type = 0;
  EBB_RETURN_IF_ERROR(read(type));
  if (key == GGUF_KEY_GENERAL_ALIGNMENT) return walk_alignment(type);
  if (type == GGUF_TYPE_ARRAY) return walk_array(key);
  if (type == GGUF_TYPE_STRING) {
    std::string_view text;
    return read_string(text);
  }
  const std::uint64_t n_bytes = scalar_bytes(type);
  if (n_bytes == 0) return damaged("key '{}' has the unknown type {}", printable(key), type);
  return skip(n_bytes, "a key's value");
}

Status HeaderWalk::walk_array(std::string_view key) {
  std::uint32_t type = 0;
  std::uint64_t n_elements = 0;
  EBB_RETURN_IF_ERROR(read(type));
  EBB_RETURN_IF_ERROR(read(n_elements));
  if (n_elements > n_elements_left_) {
    return damaged("the array '{}' claims {} elements (at most {} over all arrays)", printable(key), n_elements,
                   kMaxGgufArrayElements);
  }
  n_elements_left_ -= n_elements;
  if (type == GGUF_TYPE_STRING) {
    std::string_view text;
    for (std::uint64_t i = 0; i < n_elements; ++i) EBB_RETURN_IF_ERROR(read_string(text));
    return {};
  }
  const std::uint64_t n_bytes = scalar_bytes(type);
  if (n_bytes == 0) return damaged("the array '{}' has elements of the unknown type {}", printable(key), type);
  return skip(n_bytes * n_elements, "an array");
}

Status HeaderWalk::walk_alignment(std::uint32_t type) {
  if (type != GGUF_TYPE_UINT32) return damaged("key '{}' is no u32", GGUF_KEY_GENERAL_ALIGNMENT);
  std::uint32_t value = 0;
  EBB_RETURN_IF_ERROR(read(value));
  // Below 8, floats would lie across their own size; above a page, nobody gains.
  if (!std::has_single_bit(value) || value < 8 || value > (1U << 16U)) {
    return damaged("an alignment of {} (a power of two, 8 to 65536)", value);
  }
  alignment_ = value;
  return {};
}

Status HeaderWalk::walk_shape(std::string_view name, std::array<std::uint64_t, GGML_MAX_DIMS>& shape) {
  std::uint32_t n_dims = 0;
  EBB_RETURN_IF_ERROR(read(n_dims));
  if (n_dims < 1 || n_dims > GGML_MAX_DIMS) {
    return damaged("tensor '{}' has {} dimensions (1 to {})", printable(name), n_dims, GGML_MAX_DIMS);
  }
  shape.fill(1);
  std::uint64_t n_elements = 1;
  for (std::uint32_t i = 0; i < n_dims; ++i) {
    EBB_RETURN_IF_ERROR(read(shape[i]));
    if (shape[i] < 1 || shape[i] > kMaxElements / n_elements) {
      return damaged("tensor '{}' has the impossible size {} in dimension {}", printable(name), shape[i], i);
    }
    n_elements *= shape[i];
  }
  return {};
}

Status HeaderWalk::walk_tensor(std::uint64_t index) {
  std::string_view name;
  EBB_RETURN_IF_ERROR(read_name(name, "tensor"));
  if (name.size() >= GGML_MAX_NAME) return damaged("tensor {} has a name of {} bytes", index, name.size());
  if (!tensor_names_.insert(name).second) return damaged("tensor '{}' appears twice", printable(name));

  std::array<std::uint64_t, GGML_MAX_DIMS> shape{};
  EBB_RETURN_IF_ERROR(walk_shape(name, shape));
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
  const auto block = static_cast<std::uint64_t>(ggml_blck_size(static_cast<ggml_type>(type)));
  if (shape[0] % block != 0) {
    return damaged("tensor '{}' has rows of {}, which blocks of {} do not divide", printable(name), shape[0], block);
  }
  if (offset != data_end_) {
    return damaged("tensor '{}' begins at {} where {} was expected", printable(name), offset, data_end_);
  }
  // At most 2^48 elements of at most 2^16 bytes each: no overflow, and sums are checked against the file at once.
  const std::uint64_t n_bytes =
      shape[0] / block * ggml_type_size(static_cast<ggml_type>(type)) * shape[1] * shape[2] * shape[3];
  data_used_ = data_end_ + n_bytes;
  data_end_ = (data_used_ + alignment_ - 1) / alignment_ * alignment_;
  if (data_used_ > bytes_.size()) {
    return damaged("it is cut short: tensor '{}' ends {} bytes into the tensors, the whole file has {}",
                   printable(name), data_used_, bytes_.size());
  }
  return {};
}

Status HeaderWalk::check_data() const {
  const std::uint64_t data_begin = (at_ + alignment_ - 1) / alignment_ * alignment_;
  if (n_tensors_ > 0 && data_begin + data_used_ > bytes_.size()) {
    return damaged("it is cut short: {} bytes of {}", bytes_.size(), data_begin + data_used_);
  }
  return {};
}

}  // namespace

Status scan_gguf(std::span<const std::byte> bytes, const std::string& file) { return HeaderWalk(bytes, file).walk(); }

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
