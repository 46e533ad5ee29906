// What model/score_kernels_body.h asks of registers of 64 bytes but products of bytes, for the files that are built for them.
#pragma once

#include "model/score_lanes_256.h"

namespace ebb {
namespace {

struct Lanes512 {
  using Half = Lanes256;
  using Floats [[gnu::vector_size(64)]] = float;
  using Ints [[gnu::vector_size(64)]] = std::int32_t;
  static Ints widened(const unsigned char* p) {
    return Ints(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  template <class Whole>
  static Ints widened_of(const unsigned char* p, __m128i (*repeat)(Whole)) {
    Whole x;
    __builtin_memcpy(&x, p, sizeof x);
    return Ints(_mm512_cvtepu8_epi32(repeat(x)));
  }
  static Ints repeated(const unsigned char* p, std::size_t n) {
    if (n == 4) return widened_of<std::int32_t>(p, _mm_set1_epi32);
    if (n == 8) return widened_of<long long>(p, _mm_set1_epi64x);
    return widened(p);
  }
  static Floats of_halves(const std::uint16_t* p) {
    return Floats(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
  }
  static Floats to_floats(Ints x) { return __builtin_convertvector(x, Floats); }
  static void narrowed(Ints x, unsigned char* p) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(__m512i(x)));
  }
  static Ints looked_up(const unsigned char* table, Ints indices) {
    const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return Ints(_mm512_shuffle_epi8(_mm512_broadcast_i32x4(all), __m512i(indices)));
  }
};

}  // namespace
}  // namespace ebb
