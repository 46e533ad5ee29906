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
  static Floats of_halves(const std::uint16_t* p) {
    return Floats(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static Floats to_floats(Ints x) { return __builtin_convertvector(x, Floats); }
  static Ints add_products(Ints sum, Ints a, Ints b) { return sum + Ints(_mm256_madd_epi16(__m256i(a), __m256i(b))); }
};

}  // namespace
}  // namespace ebb
