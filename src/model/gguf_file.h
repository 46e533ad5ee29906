// GgufFile: the header of a GGUF file, checked, and its tensors' places in the mapped file.
//
// It does not know architectures: keys and tensors are only names here. What it promises: after open() every tensor
// lies inside the file, has a type that ggml knows and a whole number of blocks per row, and no accessor can abort.
// gguf.h parses the header, but only after our own bounded walk over it (gguf_scan.h): it trusts counts too far.
// Thread rule: immutable after open().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ggml.h"
#include "gguf.h"

#include "base/status.h"
#include "device/mapped_file.h"

namespace ebb {

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

class GgufFile {
 public:
  // kDamaged when it is no GGUF file, is cut short or contradicts itself; kUnsupported for other versions, other byte
  // orders and one part of several.
  static Result<GgufFile> open(const std::filesystem::path& path);

  [[nodiscard]] const MappedFile& mapping() const { return mapping_; }
  // For messages: the file's name as the user gave it.
  [[nodiscard]] std::string name() const { return mapping_.path().string(); }

  // Values of keys. Nothing when the key is absent; kDamaged when its type or range is another. Integers may be stored
  // in any integer type, floats in f32 or f64.
  [[nodiscard]] Result<std::optional<std::int64_t>> find_int(const std::string& key) const;
  [[nodiscard]] Result<std::optional<double>> find_float(const std::string& key) const;
  [[nodiscard]] Result<std::optional<bool>> find_bool(const std::string& key) const;
  [[nodiscard]] Result<std::optional<std::string>> find_string(const std::string& key) const;
  // An array of integers or bools; a single value is an array of one.
  [[nodiscard]] Result<std::optional<std::vector<std::int64_t>>> find_ints(const std::string& key) const;
  // Elements of an array of any type; nothing when the key is absent or no array.
  [[nodiscard]] std::optional<std::size_t> find_array_length(const std::string& key) const;
  [[nodiscard]] bool is_array(const std::string& key) const;

  [[nodiscard]] std::span<const TensorInfo> tensors() const { return tensors_; }
  [[nodiscard]] const TensorInfo* find_tensor(const std::string& name) const;
  // The tensor's bytes in the mapping.
  [[nodiscard]] std::span<const std::byte> bytes_of(const TensorInfo& tensor) const;

  // Sums over all tensors.
  [[nodiscard]] std::int64_t n_parameters() const;
  [[nodiscard]] std::size_t n_tensor_bytes() const;

 private:
  struct FreeGguf {
    void operator()(gguf_context* context) const { gguf_free(context); }
  };

  explicit GgufFile(MappedFile mapping) : mapping_(std::move(mapping)) {}
  Status read_tensor_table();
  Status refuse_parts() const;
  [[nodiscard]] std::int64_t find_key(const std::string& key) const;
  [[nodiscard]] Status wrong_type(const std::string& key, std::string_view expected) const;

  MappedFile mapping_;
  std::unique_ptr<gguf_context, FreeGguf> gguf_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, std::size_t> tensor_by_name_;
};

}  // namespace ebb
