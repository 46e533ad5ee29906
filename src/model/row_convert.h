// Floats to the elements of a row type and back, as frames hold them in any layout.
//
// It does not know frames, slots or who asks. Rounding is ggml's: to the nearest, ties to even, and for q8_0 away from
// zero. Every kernel set gives the same bits. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/frame_layout.h"
#include "model/attention_kernel.h"

namespace ebb {

// n neighbouring elements of a type without scales: kF32, kF16 or kBF16.
void write_elements(const AttentionKernels& kernels, RowType type, const float* x, std::int32_t n, std::byte* out);
void read_elements(const AttentionKernels& kernels, RowType type, const std::byte* in, std::int32_t n, float* out);

// kScaleGroup values of a q8_0 row; returns their scale, which is still to be rounded to f16.
float quantise_group(const float* x, std::int8_t* out);

}  // namespace ebb
