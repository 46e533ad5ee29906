#include "engine/file_type.h"

#include <algorithm>
#include <map>

#include "llama.h"

namespace ebb {

std::string file_type_name(const GgufFile& file) {
  const Result<std::optional<std::int64_t>> type = file.find_int("general.file_type");
  if (type.ok() && *type && **type >= 0 && **type < LLAMA_FTYPE_GUESSED) {
    return llama_ftype_name(static_cast<llama_ftype>(**type));
  }
  std::map<ggml_type, std::size_t> bytes_of;
  for (const TensorInfo& tensor : file.tensors()) bytes_of[tensor.type] += tensor.n_bytes;
  const auto most = std::ranges::max_element(bytes_of, {}, [](const auto& entry) { return entry.second; });
  return most == bytes_of.end() ? std::string() : ggml_type_name(most->first);
}

}  // namespace ebb
