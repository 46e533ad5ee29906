#include "model/architecture.h"

#include <array>
#include <optional>

#include "gguf/gguf_file.h"
#include "gguf/gguf_header.h"

namespace ebb {

std::span<const Architecture* const> all_architectures() {
  static const std::array kAll{&arch_llama(), &arch_qwen2(), &arch_qwen3(), &arch_gemma3()};
  return kAll;
}

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture* architecture : all_architectures()) {
    if (architecture->name == name) return architecture;
  }
  return nullptr;
}

std::string architecture_names() {
  std::string names;
  for (const Architecture* architecture : all_architectures()) {
    if (!names.empty()) names += ", ";
    names += architecture->name;
  }
  return names;
}

Result<const Architecture*> get_architecture(const GgufFile& file) {
  EBB_ASSIGN_OR_RETURN(const std::optional<std::string> name, file.find_string("general.architecture"));
  if (!name) {
    return error(Code::kDamaged, "{}: key 'general.architecture' is missing; give a model, converted by a current tool",
                 file.name());
  }
  const Architecture* architecture = find_architecture(*name);
  if (architecture == nullptr) {
    return error(Code::kUnsupported, "{}: architecture '{}' is not supported ({} are); use another model", file.name(),
                 printable(*name), architecture_names());
  }
  return architecture;
}

}  // namespace ebb
