// Qwen 3, the dense ones.
#include "model/architecture.h"

namespace ebb {

const Architecture& arch_qwen3() {
  static constexpr Architecture kQwen3{
      .name = "qwen3",
      .rope = RopeKind::kNeoX,
      .qkv_bias = Presence::kOptional,  // attention_bias in its configuration; no published model has them
      .qk_norm = true,
  };
  return kQwen3;
}

}  // namespace ebb
