// Where the elements and scales of one q8_0 key or value lie in its frame, by dimension or by row.
//
// Thread rule: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/to_size.h"
#include "cache/frame_layout.h"
#include "model/attention_kernel.h"

namespace ebb {

// Byte: std::byte, or const std::byte for who only reads.
template <class Byte>
struct ScaledRow {
  Byte* elements;
  std::size_t dim_stride;
  std::size_t group_stride;
  Byte* scales;
  std::size_t scale_stride;
};

// A row of ggml's block_q8_0: the scale, then its elements.
template <class Byte>
ScaledRow<Byte> ggml_row(Byte* rows, std::size_t slot, std::int32_t head_dim) {
  constexpr std::size_t kGroupBytes = kScaleBytes + kScaleGroup;
  Byte* const row = rows + slot * to_size(head_dim / kScaleGroup) * kGroupBytes;
  return {.elements = row + kScaleBytes,
          .dim_stride = 1,
          .group_stride = kGroupBytes,
          .scales = row,
          .scale_stride = kGroupBytes};
}

template <class Byte>
ScaledRow<Byte> scaled_key(const FrameLayout& layout, Byte* frame, std::size_t slot) {
  Byte* const k = frame + layout.k_offset();
  if (layout.key_order == KeyOrder::kByDim) {
    const std::size_t stride = to_size(layout.key_stride());
    return {.elements = k + slot,
            .dim_stride = stride,
            .group_stride = stride * kScaleGroup,
            .scales = frame + layout.k_scales_offset() + slot * kScaleBytes,
            .scale_stride = stride * kScaleBytes};
  }
  return ggml_row(k, slot, layout.head_dim_k);
}

template <class Byte>
ScaledRow<Byte> scaled_value(const FrameLayout& layout, Byte* frame, std::size_t slot) {
  Byte* const v = frame + layout.v_offset();
  if (layout.key_order == KeyOrder::kByRow) return ggml_row(v, slot, layout.head_dim_v);
  const std::size_t n_dims = to_size(layout.head_dim_v);
  return {.elements = v + slot * n_dims,
          .dim_stride = 1,
          .group_stride = kScaleGroup,
          .scales = frame + layout.v_scales_offset() + slot * (n_dims / kScaleGroup) * kScaleBytes,
          .scale_stride = kScaleBytes};
}

// Its first n_groups * kScaleGroup numbers.
template <class Byte>
void read_scaled(const AttentionKernels& kernels, const ScaledRow<Byte>& row, std::size_t n_groups, float* out) {
  std::array<std::uint16_t, kMaxHeadDim / kScaleGroup> packed;
  std::array<float, kMaxHeadDim / kScaleGroup> scales;
  for (std::size_t g = 0; g < n_groups; ++g) std::memcpy(&packed[g], row.scales + g * row.scale_stride, kScaleBytes);
  kernels.from_f16(packed.data(), scales.data(), static_cast<std::int32_t>(n_groups));
  for (std::size_t g = 0; g < n_groups; ++g) {
    const Byte* const elements = row.elements + g * row.group_stride;
    for (std::size_t d = 0; d < to_size(kScaleGroup); ++d) {
      out[g * kScaleGroup + d] = static_cast<float>(static_cast<std::int8_t>(elements[d * row.dim_stride])) * scales[g];
    }
  }
}

}  // namespace ebb
