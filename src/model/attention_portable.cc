// The attention kernels in plain C++: what every Vector means. Correct everywhere; fast only where the compiler turns
// the loops into vector instructions (NEON has a fused multiply-add; plain x86-64 has not and calls the C library).
#include <bit>
#include <cmath>

#include "base/half.h"
#include "model/attention_kernel_body.h"

namespace ebb {
namespace {

using kernel::BF16;
using kernel::F16;
using kernel::kVectorFloats;

std::uint16_t float_to_f16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t half = 0;
  if (magnitude > 0x7F800000U) {
    half = 0x7E00U | ((magnitude >> 13) & 0x3FFU);
  } else if (magnitude >= 0x47800000U) {  // 2^16 and above
    half = 0x7C00U;
  } else if (magnitude >= 0x38800000U) {  // normal; rounding up may carry into the exponent, up to infinity
    half = (magnitude - (112U << 23) + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
  } else {
    // Adding 1/2 puts the last bit of a subnormal half at the last bit of the sum, which rounds to even.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
  }
  return static_cast<std::uint16_t>(sign | half);
}

float value_of(float e) { return e; }
float value_of(std::int8_t e) { return static_cast<float>(e); }
float value_of(F16 e) { return half_to_float(static_cast<std::uint16_t>(e)); }
float value_of(BF16 e) { return std::bit_cast<float>(static_cast<std::uint32_t>(e) << 16); }

struct Vector {
  static constexpr int kMaxRows = 6;
  template <int R>
  static constexpr int tile_width() {
    return R == 1 ? 4 : R == 2 ? 2 : 1;
  }

  float x[kVectorFloats];

  template <class F>
  static Vector each(F f) {
    Vector out;
    for (int i = 0; i < kVectorFloats; ++i) out.x[i] = f(i);
    return out;
  }

  template <class E>
  static Vector load(const E* p) {
    return each([p](int i) { return value_of(p[i]); });
  }
  // 8 bytes: codes 0..7 in their low halves, 8..15 in their high ones.
  static Vector load_codes(const std::uint8_t* p) {
    return each([p](int i) { return static_cast<float>(i < 8 ? p[i] & 15U : p[i - 8] >> 4U); });
  }
  void store(float* p) const {
    for (int i = 0; i < kVectorFloats; ++i) p[i] = x[i];
  }
  static void store_f16(const Vector& a, std::uint16_t* p) {
    for (int i = 0; i < kVectorFloats; ++i) p[i] = float_to_f16(a.x[i]);
  }

  static Vector broadcast(float a) {
    return each([a](int) { return a; });
  }
  static Vector broadcast(const F16* p) { return broadcast(value_of(*p)); }
  static Vector fma(const Vector& a, const Vector& b, const Vector& c) {
    return each([&](int i) { return std::fma(a.x[i], b.x[i], c.x[i]); });
  }
  static Vector mul(const Vector& a, const Vector& b) {
    return each([&](int i) { return a.x[i] * b.x[i]; });
  }
  static Vector add(const Vector& a, const Vector& b) {
    return each([&](int i) { return a.x[i] + b.x[i]; });
  }
  static Vector sub(const Vector& a, const Vector& b) {
    return each([&](int i) { return a.x[i] - b.x[i]; });
  }
  static Vector max(const Vector& a, const Vector& b) {
    return each([&](int i) { return a.x[i] > b.x[i] ? a.x[i] : b.x[i]; });
  }

  // a * 2^n, where n are the low bits of the float `n`.
  static Vector add_exponent(const Vector& a, const Vector& n) {
    return each([&](int i) {
      return std::bit_cast<float>(std::bit_cast<std::uint32_t>(a.x[i]) + (std::bit_cast<std::uint32_t>(n.x[i]) << 23));
    });
  }
  static Vector zero_below(const Vector& a, float limit, const Vector& b) {
    return each([&](int i) { return a.x[i] < limit ? 0.0F : b.x[i]; });
  }
  // Elements [begin, end) of a, the rest `other`.
  static Vector keep(const Vector& a, int begin, int end, float other) {
    return each([&](int i) { return i >= begin && i < end ? a.x[i] : other; });
  }
  // The tree of the promise: elements i and i + 8, then i + 4, i + 2, i + 1.
  static float reduce_add(Vector a) {
    for (int n = kVectorFloats / 2; n > 0; n /= 2) {
      for (int i = 0; i < n; ++i) a.x[i] += a.x[i + n];
    }
    return a.x[0];
  }
  static float reduce_max(Vector a) {
    for (int n = kVectorFloats / 2; n > 0; n /= 2) {
      for (int i = 0; i < n; ++i) a.x[i] = a.x[i] > a.x[i + n] ? a.x[i] : a.x[i + n];
    }
    return a.x[0];
  }
};

}  // namespace

const AttentionKernels kPortableKernels = {
    .step_sizes = {1, 2, 4, 6},
    .attend_block = {kernel::attend_plain<Vector, float>, kernel::attend_plain<Vector, F16>,
                     kernel::attend_plain<Vector, BF16>, kernel::attend_scaled<Vector>, kernel::attend_sealed<Vector>},
    .score_diagonals = {kernel::score_plain<Vector, float>, kernel::score_plain<Vector, F16>,
                        kernel::score_plain<Vector, BF16>, kernel::score_scaled<Vector>, kernel::score_sealed<Vector>},
    .exp2_in_place = kernel::exp2_in_place<Vector>,
    .add_slots = kernel::add_slots<Vector>,
    .to_f16 = kernel::to_f16<Vector>,
    .from_f16 = kernel::from_f16<Vector>,
    .from_codes = kernel::from_codes<Vector>,
    .multiply = kernel::multiply<Vector>,
};

}  // namespace ebb
