// For tests: what rows of a type keep of floats, by ggml's own scalar code and by plain loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ggml.h"

#include "base/to_size.h"
#include "cache/frame_layout.h"

namespace ebb::toy {

inline ggml_type ggml_type_of(RowType type) {
  switch (type) {
    case RowType::kF32: return GGML_TYPE_F32;
    case RowType::kF16: return GGML_TYPE_F16;
    case RowType::kBF16: return GGML_TYPE_BF16;
    case RowType::kQ8_0: return GGML_TYPE_Q8_0;
    case RowType::kKivi4: break;
  }
  return GGML_TYPE_COUNT;
}

// What a row of this type holds after writing x, by ggml's own scalar code.
inline std::vector<float> stored_values(RowType type, const float* x, std::int32_t n) {
  std::vector<float> out(x, x + n);
  if (type == RowType::kF32) return out;
  const ggml_type_traits* const traits = ggml_get_type_traits(ggml_type_of(type));
  std::vector<std::uint8_t> row(ggml_row_size(ggml_type_of(type), n));
  traits->from_float_ref(x, row.data(), n);
  traits->to_float(row.data(), out.data(), n);
  return out;
}

// What a run of sealed codes of f16 values gives back, in the scalar arithmetic that model/sealed_frame.h promises.
inline void seal_run(std::vector<float*> values) {
  float least = *values[0];
  float greatest = least;
  for (const float* x : values) {
    least = std::min(least, *x);
    greatest = std::max(greatest, *x);
  }
  const float range = (greatest - least) / 15.0F;
  ggml_fp16_t half = ggml_fp32_to_fp16(range);
  if (ggml_fp16_to_fp32(half) < range) ++half;
  const float scale = ggml_fp16_to_fp32(half);
  const float inverse = scale > 0.0F ? 1.0F / scale : 0.0F;
  for (float* x : values) {
    *x = std::fma(std::floor(std::min((*x - least) * inverse + 0.5F, 15.0F)), scale, least);
  }
}

}  // namespace ebb::toy
