// Sealed frames: 4-bit codes of a block that is full, made from its f16 rows, and read again.
//
// It knows the planes of one frame (cache/frame_layout.h) and how a run of values becomes codes; it does not know tables,
// steps or sessions. The rows themselves are gone afterwards: from a sealed frame nothing gives them back.
//
//   least = min x;   scale = (max x - least) / 15, rounded up to f16;   code = round((x - least) / scale), 0..15
//   value = fma(code, scale, least)
//
// `least` is one of the values and so exact in f16. Rounding the scale up keeps the greatest value within reach, so that
// no value is off by more than scale / 2, and a run of one value is exact (scale 0). Infinities count as the largest
// f16, and what is no number as 0: codes can hold neither. Every kernel set gives the same bits.
//
// Thread rule: pure functions; one frame by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/frame_layout.h"
#include "model/attention_kernel.h"

namespace ebb {

// The most values that share a scale.
inline constexpr std::int32_t kMaxRun = kMaxBlockKeys;

// f16 values, as floats; n is 1 to kMaxRun. Codes go to [n rounded up to 16] / 2 bytes, those past n as 0.
struct CodedRun {
  std::uint16_t scale = 0;
  std::uint16_t least = 0;
};
[[nodiscard]] CodedRun code_run(const AttentionKernels& kernels, const float* x, std::int32_t n, std::uint8_t* codes);

// `layout` seals; `open` is a frame of its open_layout() in which all block_size slots are written.
void seal_frame(const FrameLayout& layout, const AttentionKernels& kernels, const std::byte* open, std::byte* sealed);

// One dimension of the keys of a sealed frame, [key_stride]. Writing rounds to f16 first, as if the block had been
// open with these keys.
void read_sealed_keys(const FrameLayout& layout, const AttentionKernels& kernels, const std::byte* sealed,
                      std::int32_t dim, float* out);
void write_sealed_keys(const FrameLayout& layout, const AttentionKernels& kernels, std::byte* sealed, std::int32_t dim,
                       const float* x);

// The value of one token of a sealed frame, [value_stride].
void read_sealed_value(const FrameLayout& layout, const AttentionKernels& kernels, const std::byte* sealed,
                       std::int32_t slot, float* out);

}  // namespace ebb
