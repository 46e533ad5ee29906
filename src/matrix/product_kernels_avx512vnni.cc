// The loops of matrix/product_kernels.h for AVX-512 with VNNI.
#include <immintrin.h>

#include "matrix/product_kernels_body.h"

namespace ebb {
namespace {

struct Lanes {
  static constexpr std::size_t kLanes = 16;
  static constexpr std::size_t kRowsTogether = 8;
  using Floats [[gnu::vector_size(64)]] = float;
  using Ints [[gnu::vector_size(64)]] = std::int32_t;
  using Bytes [[gnu::vector_size(64)]] = std::uint8_t;

  static Bytes load(const void* p) { return Bytes(_mm512_loadu_si512(p)); }
  static Floats load(const float* p) { return _mm512_loadu_ps(p); }
  static Floats repeated(float x) { return _mm512_set1_ps(x); }
  static Floats of_halves(const std::byte* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Floats of_upper_halves(const std::byte* p) {
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
  }
  static Floats of_signed(const std::uint8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static Ints widened(const std::uint8_t* p) {
    return Ints(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static Bytes looked_up(const std::uint8_t* table, Bytes codes) {
    const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
    return Bytes(_mm512_shuffle_epi8(_mm512_broadcast_i32x4(all), __m512i(codes)));
  }
  static Floats to_floats(Ints x) { return _mm512_cvtepi32_ps(__m512i(x)); }
  static Floats fused(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }

  template <std::int32_t kOffset>
  static Ints begin(std::int32_t minus_sum) {
    return Ints(_mm512_set1_epi32(kOffset * minus_sum));
  }
  template <std::int32_t kOffset>
  static Ints add_products(Ints sum, Bytes codes, std::int32_t quad) {
    return Ints(_mm512_dpbusd_epi32(__m512i(sum), __m512i(codes), _mm512_set1_epi32(quad)));
  }

  static Ints nearest(Floats x) { return Ints(_mm512_cvtps_epi32(x)); }
  static void narrowed(Ints x, std::int8_t* p) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(__m512i(x)));
  }
  static std::int32_t sum(Ints x) { return _mm512_reduce_add_epi32(__m512i(x)); }
};

}  // namespace

const ProductKernels kAvx512VnniProductKernels = ProductLoops<Lanes>::all();

}  // namespace ebb
