// What model/score_kernels_body.h asks of registers of 32 bytes, for the files that are built for them or for wider ones.
#pragma once

#include <cstdint>

#include <immintrin.h>

namespace ebb {
namespace {

struct Lanes256 {
  using Half = Lanes256;
  using Floats [[gnu::vector_size(32)]] = float;
  using Ints [[gnu::vector_size(32)]] = std::int32_t;
  static Ints widened(const unsigned char* p) {
    return Ints(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static Ints repeated(const unsigned char* p, std::size_t n) {
    if (n != 4) return widened(p);
    std::int32_t x;
    __builtin_memcpy(&x, p, sizeof x);
    return Ints(_mm256_cvtepu8_epi32(_mm_set1_epi32(x)));
  }
  static Floats of_halves(const std::uint16_t* p) {
    return Floats(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static Floats to_floats(Ints x) { return __builtin_convertvector(x, Floats); }
  static void narrowed(Ints x, unsigned char* p) {
    const __m256i low_bytes = _mm256_set_epi8(-1, -1, -1, -1, -1, -1, -1, -1, 12, 8, 4, 0, -1, -1, -1, -1, -1, -1, -1,
                                              -1, -1, -1, -1, -1, -1, -1, -1, -1, 12, 8, 4, 0);
    const __m256i bytes = _mm256_shuffle_epi8(__m256i(x), low_bytes);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p),
                     _mm_or_si128(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1)));
  }
  static Ints looked_up(const unsigned char* table, Ints indices) {
    const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return Ints(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(all), __m256i(indices)));
  }
  static Ints add_products(Ints sum, Ints a, Ints b) {
    const __m256i pairs = _mm256_maddubs_epi16(__m256i(a), __m256i(b));
    return sum + Ints(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

}  // namespace
}  // namespace ebb
