// KeyReader: the keys "ARCHITECTURE.suffix" of a GGUF file, each with the range that makes sense.
//
// Every error is one line that names the file, the key, its value and what was expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "gguf/gguf_file.h"

namespace ebb {

struct IntRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

struct FloatRange {
  double min = 0.0;
  double max = 0.0;
};

class KeyReader {
 public:
  KeyReader(const GgufFile& file, std::string_view architecture) : file_(file), prefix_(architecture) {}

  [[nodiscard]] const GgufFile& file() const { return file_; }
  [[nodiscard]] std::string key(std::string_view suffix) const { return prefix_ + "." + std::string(suffix); }

  // kDamaged when it is missing, of another type or outside the range; find_x only for the last two.
  [[nodiscard]] Result<std::int32_t> get_int(std::string_view suffix, IntRange range) const;
  [[nodiscard]] Result<std::optional<std::int32_t>> find_int(std::string_view suffix, IntRange range) const;
  [[nodiscard]] Result<float> get_float(std::string_view suffix, FloatRange range) const;
  [[nodiscard]] Result<std::optional<float>> find_float(std::string_view suffix, FloatRange range) const;

  // A number for all layers, or an array of one per layer; kUnsupported when layers differ.
  [[nodiscard]] Result<std::optional<std::int32_t>> find_layer_int(std::string_view suffix, IntRange range,
                                                                   std::int32_t n_layers) const;

  // kUnsupported when the key holds another number than 0 or `neutral`: it asks for what ebb does not compute.
  [[nodiscard]] Status refuse(std::string_view suffix, double neutral) const;

 private:
  [[nodiscard]] Result<std::int32_t> checked(std::string_view suffix, std::int64_t value, IntRange range) const;
  [[nodiscard]] Status missing(std::string_view suffix) const;

  const GgufFile& file_;
  std::string prefix_;
};

}  // namespace ebb
