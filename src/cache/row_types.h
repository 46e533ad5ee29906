// The ggml type of a RowType, for frames that lie by row.
#pragma once

#include <ggml.h>

#include "cache/frame_layout.h"

namespace ebb {

[[nodiscard]] constexpr ggml_type to_ggml_type(RowType type) {
  switch (type) {
    case RowType::kF32: return GGML_TYPE_F32;
    case RowType::kF16: return GGML_TYPE_F16;
    case RowType::kBF16: return GGML_TYPE_BF16;
    case RowType::kQ8_0: return GGML_TYPE_Q8_0;
    case RowType::kKivi4: break;  // no row: FrameLayout::validate() refuses it
  }
  return GGML_TYPE_COUNT;
}

}  // namespace ebb
