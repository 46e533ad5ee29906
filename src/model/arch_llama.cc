// Llama 2, 3 and 3.1, Mistral, and the many that share their shape.
#include "model/architecture.h"

namespace ebb {

const Architecture& arch_llama() {
  static constexpr Architecture kLlama{
      .name = "llama",
      .rope = RopeKind::kNormal,  // conversion to GGUF permutes Q and K so that pairs are neighbours
      .qkv_bias = Presence::kOptional,
      .output_bias = Presence::kOptional,
      .rope_factors = Presence::kOptional,  // Llama 3.1 and later
  };
  return kLlama;
}

}  // namespace ebb
