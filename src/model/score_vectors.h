// What model/score_kernels_body.h does with registers of so many bytes and needs no instruction of its own for. Nothing here is
// a function that other files could link to.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ebb {
namespace {

template <std::size_t kVectorBytes>
struct ScoreVectors {
  using Floats [[gnu::vector_size(kVectorBytes)]] = float;
  using Ints [[gnu::vector_size(kVectorBytes)]] = std::int32_t;
  static constexpr std::size_t kFloats = kVectorBytes / sizeof(float);

  // Adding 1.5 2^23 rounds to a whole number, which then stands in the low bits.
  static constexpr float kRound = 12582912.0F;
  static constexpr std::int32_t kRoundBits = 0x4B400000;

  static Floats load(const float* p) {
    Floats x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  static void store(const Floats& x, float* p) { __builtin_memcpy(p, &x, sizeof x); }
  static Ints load(const std::int32_t* p) {
    Ints x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  static void store(const Ints& x, std::int32_t* p) { __builtin_memcpy(p, &x, sizeof x); }
  static Ints bits_of(const Floats& x) {
    Ints bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
  }
  static Floats greater(const Floats& a, const Floats& b) { return a < b ? b : a; }
  static Ints whole(const Floats& x) { return bits_of(x + kRound) - kRoundBits; }

  // exp of what is not above 0: 2^n times a cubic in what is left, within 1.1e-4 of it. Adding kRound shifts n into the
  // low bits, and shifting those up drops the rest.
  static Floats exp_of(const Floats& x) {
    const Floats least = Floats{} - 80.0F;
    const Floats t = (x < least ? least : x) * 1.44269504F;
    const Floats rounded = t + kRound;
    const Floats f = t - (rounded - kRound);
    const Floats p = 1.0F + f * (0.6933F + f * (0.2422F + f * 0.0549F));
    const Ints power = bits_of(p) + (bits_of(rounded) << 23);
    Floats two_n;
    __builtin_memcpy(&two_n, &power, sizeof two_n);
    return two_n;
  }
};

}  // namespace
}  // namespace ebb
