#include "model/row_convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/to_size.h"

namespace ebb {
namespace {

// Round to nearest even; NaN stays NaN (and quiet), as in ggml.
std::uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

// Floats without their sign, as integers: these compare alike, and unlike comparisons of floats they can be computed
// for several values at once without a trap to mind.
std::int32_t magnitude_of(float x) { return std::bit_cast<std::int32_t>(x) & 0x7FFFFFFF; }
constexpr std::int32_t kInfinity = 0x7F800000;

// roundf for |x| <= 127, without the call. The addend is the float below 1/2, so that 0.49999997 does not round up.
std::int8_t round_away(float x) {
  // More comes only from infinities and NaNs, which q8_0 cannot hold. A mask, because a branch keeps the loop scalar.
  const std::int32_t all_or_none = -static_cast<std::int32_t>(magnitude_of(x) < std::bit_cast<std::int32_t>(127.5F));
  const auto held = std::bit_cast<float>(std::bit_cast<std::int32_t>(x) & all_or_none);
  return static_cast<std::int8_t>(static_cast<std::int32_t>(held + std::copysign(0x1.fffffep-2F, held)));
}

}  // namespace

void write_elements(const AttentionKernels& kernels, RowType type, const float* x, std::int32_t n, std::byte* out) {
  switch (type) {
    case RowType::kF32: std::memcpy(out, x, to_size(n) * sizeof(float)); return;
    case RowType::kF16: kernels.to_f16(x, reinterpret_cast<std::uint16_t*>(out), n); return;
    case RowType::kBF16:
      for (std::int32_t i = 0; i < n; ++i) {
        const std::uint16_t element = to_bf16(x[i]);
        std::memcpy(out + to_size(i) * sizeof(element), &element, sizeof(element));
      }
      return;
    case RowType::kQ8_0:
    case RowType::kKivi4: break;
  }
  EBB_CHECK(false, "elements of {} have scales", row_type_name(type));
}

void read_elements(const AttentionKernels& kernels, RowType type, const std::byte* in, std::int32_t n, float* out) {
  switch (type) {
    case RowType::kF32: std::memcpy(out, in, to_size(n) * sizeof(float)); return;
    case RowType::kF16: kernels.from_f16(reinterpret_cast<const std::uint16_t*>(in), out, n); return;
    case RowType::kBF16:
      for (std::int32_t i = 0; i < n; ++i) {
        std::uint16_t element = 0;
        std::memcpy(&element, in + to_size(i) * sizeof(element), sizeof(element));
        out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(element) << 16);
      }
      return;
    case RowType::kQ8_0:
    case RowType::kKivi4: break;
  }
  EBB_CHECK(false, "elements of {} have scales", row_type_name(type));
}

// d = amax / 127, kept as f16; q = round(x * (1 / d)) with d before rounding.
float quantise_group(const float* x, std::int8_t* out) {
  std::int32_t greatest = 0;
  for (std::int32_t i = 0; i < kScaleGroup; ++i) {
    const std::int32_t magnitude = magnitude_of(x[i]);
    greatest = std::max(greatest, magnitude <= kInfinity ? magnitude : 0);
  }
  const float d = std::bit_cast<float>(greatest) / 127.0F;
  const float inverse = d != 0.0F ? 1.0F / d : 0.0F;
  for (std::int32_t i = 0; i < kScaleGroup; ++i) out[i] = round_away(x[i] * inverse);
  return d;
}

}  // namespace ebb
