// Where the elements and scales of one q8_0 key lie in its frame, by dimension or by row.
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
struct ScaledKey {
  Byte* elements;
  std::size_t dim_stride;
  std::size_t group_stride;
  Byte* scales;
  std::size_t scale_stride;
};

template <class Byte>
ScaledKey<Byte> scaled_key(const FrameLayout& layout, Byte* frame, std::size_t slot) {
  Byte* const k = frame + layout.k_offset();
  if (layout.key_order == KeyOrder::kByDim) {
    const std::size_t stride = to_size(layout.key_stride());
    return {.elements = k + slot,
            .dim_stride = stride,
            .group_stride = stride * kScaleGroup,
            .scales = frame + layout.k_scales_offset() + slot * kScaleBytes,
            .scale_stride = stride * kScaleBytes};
  }
  // ggml's block_q8_0: the scale, then its elements.
  constexpr std::size_t kGroupBytes = kScaleBytes + kScaleGroup;
  Byte* const row = k + slot * to_size(layout.head_dim_k / kScaleGroup) * kGroupBytes;
  return {.elements = row + kScaleBytes,
          .dim_stride = 1,
          .group_stride = kGroupBytes,
          .scales = row,
          .scale_stride = kGroupBytes};
}

// The first n_groups * kScaleGroup values of a key.
template <class Byte>
void read_scaled(const AttentionKernels& kernels, const ScaledKey<Byte>& key, std::size_t n_groups, float* out) {
  std::array<std::uint16_t, kMaxHeadDim / kScaleGroup> packed;
  std::array<float, kMaxHeadDim / kScaleGroup> scales;
  for (std::size_t g = 0; g < n_groups; ++g) std::memcpy(&packed[g], key.scales + g * key.scale_stride, kScaleBytes);
  kernels.from_f16(packed.data(), scales.data(), static_cast<std::int32_t>(n_groups));
  for (std::size_t g = 0; g < n_groups; ++g) {
    const Byte* const elements = key.elements + g * key.group_stride;
    for (std::size_t d = 0; d < to_size(kScaleGroup); ++d) {
      out[g * kScaleGroup + d] = static_cast<float>(static_cast<std::int8_t>(elements[d * key.dim_stride])) * scales[g];
    }
  }
}

}  // namespace ebb
