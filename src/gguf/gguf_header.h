// read_gguf_header: a bounded walk over the header of a GGUF file, the one place where its bytes become keys and tensors.
//
// It reads each byte of the header once, allocates only the lists of names, and refuses what a model file never needs and
// tensors that do not lie inside the file. It refuses as well what gguf.h would refuse, allocate for or stop the process
// on, because libllama gives the same file to gguf.h afterwards. It knows no key by its meaning but the alignment.
//
//   magic "GGUF", version u32, n_tensors u64, n_keys u64
//   n_keys    x  name, type u32, value                (string: u64 length, bytes; array: type u32, count u64, elements)
//   n_tensors x  name, n_dims u32, n_dims x u64, type u32, offset u64
//   padding to the alignment; the tensors' bytes, each padded, in the order of the table
//
// Thread rule: functions of their arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ggml.h"
#include "gguf.h"

#include "base/status.h"

namespace ebb {

// More of any is no model that ebb could load, but memory and time that a hostile header costs.
inline constexpr std::uint64_t kMaxGgufKeys = 1U << 16U;
inline constexpr std::uint64_t kMaxGgufTensors = 1U << 16U;
// Over all arrays of a file: a vocabulary of 262144 tokens has 1.3 million in its four.
inline constexpr std::uint64_t kMaxGgufArrayElements = 1U << 22U;
inline constexpr std::uint64_t kMaxGgufStringBytes = 1U << 26U;

// Where a key's value lies.
struct GgufValue {
  gguf_type type = GGUF_TYPE_UINT8;  // of one element; never GGUF_TYPE_ARRAY
  bool is_array = false;
  std::size_t n = 1;
  // All elements as the file has them; strings with their lengths in front.
  std::span<const std::byte> bytes = {};
};

// One row of the tensor table.
struct TensorInfo {
  std::string name;
  ggml_type type = GGML_TYPE_F32;
  // Innermost first, 1 past n_dims.
  std::array<std::int64_t, GGML_MAX_DIMS> shape{1, 1, 1, 1};
  std::size_t file_offset = 0;
  std::size_t n_bytes = 0;

  [[nodiscard]] std::int64_t n_elements() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
  // "4096 x 128"
  [[nodiscard]] std::string shape_text() const;
};

struct GgufHeader {
  // Names and values are views of the file's bytes.
  std::unordered_map<std::string_view, GgufValue> values;
  std::vector<TensorInfo> tensors;
};

// `bytes` is the whole file; `file` names it in messages. kDamaged, or kUnsupported for other versions, other byte orders
// and tensor types that ggml does not know.
Result<GgufHeader> read_gguf_header(std::span<const std::byte> bytes, const std::string& file);

// Names from a file, fit for a one-line message: printable ASCII, cut at 64 characters.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace ebb
