// GgufFile: the header of a GGUF file, checked, and its tensors' places in the mapped file. The model and the vocabulary
// both read it.
//
// It does not know architectures: keys and tensors are only names here. What it promises: after open() every tensor
// lies inside the file, has a type that ggml knows and a whole number of blocks per row, and no accessor can abort.
// Thread rule: immutable after open().
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "gguf/gguf_header.h"
#include "gguf/mapped_file.h"

namespace ebb {

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
  // Up to its first zero byte, which is where C code takes it to end.
  [[nodiscard]] Result<std::optional<std::string>> find_string(const std::string& key) const;
  // An array of strings, whole, as views of the mapped file.
  [[nodiscard]] Result<std::optional<std::vector<std::string_view>>> find_strings(const std::string& key) const;
  // An array of integers or bools; a single value is an array of one.
  [[nodiscard]] Result<std::optional<std::vector<std::int64_t>>> find_ints(const std::string& key) const;
  // Elements of an array of any type; nothing when the key is absent or no array.
  [[nodiscard]] std::optional<std::size_t> find_array_length(const std::string& key) const;
  [[nodiscard]] bool is_array(const std::string& key) const;

  [[nodiscard]] std::span<const TensorInfo> tensors() const { return header_.tensors; }
  [[nodiscard]] const TensorInfo* find_tensor(const std::string& name) const;
  // The tensor's bytes in the mapping.
  [[nodiscard]] std::span<const std::byte> bytes_of(const TensorInfo& tensor) const;

  // Sums over all tensors.
  [[nodiscard]] std::int64_t n_parameters() const;
  [[nodiscard]] std::size_t n_tensor_bytes() const;

 private:
  GgufFile(MappedFile mapping, GgufHeader header);
  Status refuse_parts() const;
  // Null when there is none of this name.
  [[nodiscard]] const GgufValue* find_value(const std::string& key) const;
  [[nodiscard]] Status wrong_type(const std::string& key, std::string_view expected) const;

  MappedFile mapping_;
  GgufHeader header_;  // its views are of the mapping, which stays where it is when this object moves
  std::unordered_map<std::string, std::size_t> tensor_by_name_;
};

}  // namespace ebb
