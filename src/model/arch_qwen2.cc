// Qwen 2 and 2.5.
#include "model/architecture.h"

namespace ebb {

const Architecture& arch_qwen2() {
  static constexpr Architecture kQwen2{
      .name = "qwen2",
      .rope = RopeKind::kNeoX,
      .qkv_bias = Presence::kOptional,  // every Qwen has them; libllama reads files without them too
  };
  return kQwen2;
}

}  // namespace ebb
