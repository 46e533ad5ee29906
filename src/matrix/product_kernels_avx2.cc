// The loops of matrix/product_kernels.h for AVX2.
#include <immintrin.h>

#include "matrix/product_kernels_body.h"

namespace ebb {
namespace {

struct Lanes {
  static constexpr std::size_t kLanes = 8;
  static constexpr std::size_t kRowsTogether = 4;
  using Floats [[gnu::vector_size(32)]] = float;
  using Ints [[gnu::vector_size(32)]] = std::int32_t;
  using Bytes [[gnu::vector_size(32)]] = std::uint8_t;

  static Bytes load(const void* p) { return Bytes(_mm256_loadu_si256(static_cast<const __m256i*>(p))); }
  static Floats load(const float* p) { return _mm256_loadu_ps(p); }
  static Floats repeated(float x) { return _mm256_set1_ps(x); }
  static Floats of_halves(const std::byte* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Floats of_upper_halves(const std::byte* p) {
    const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
  }
  static Floats of_signed(const std::uint8_t* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static Ints widened(const std::uint8_t* p) {
    return Ints(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static Bytes looked_up(const std::uint8_t* table, Bytes codes) {
    const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
    return Bytes(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(all), __m256i(codes)));
  }
  static Floats to_floats(Ints x) { return _mm256_cvtepi32_ps(__m256i(x)); }
  static Floats fused(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }

  // Two products of a code below 128 with a byte are a number of sixteen bits; of larger codes those less 128 are.
  static constexpr bool is_signed(std::int32_t offset) { return offset == 128; }
  template <std::int32_t kOffset>
  static Ints begin(std::int32_t minus_sum) {
    return Ints(_mm256_set1_epi32(is_signed(kOffset) ? 0 : kOffset * minus_sum));
  }
  template <std::int32_t kOffset>
  static Ints add_products(Ints sum, Bytes codes, std::int32_t quad) {
    __m256i own = __m256i(codes);
    __m256i other = _mm256_set1_epi32(quad);
    if constexpr (is_signed(kOffset)) {
      const __m256i value = _mm256_xor_si256(own, _mm256_set1_epi8(-128));
      other = _mm256_sign_epi8(other, value);
      own = _mm256_abs_epi8(value);
    }
    const __m256i products = _mm256_madd_epi16(_mm256_maddubs_epi16(own, other), _mm256_set1_epi16(1));
    return sum + Ints(products);
  }

  static Ints nearest(Floats x) { return Ints(_mm256_cvtps_epi32(x)); }
  static void narrowed(Ints x, std::int8_t* p) {
    for (std::size_t i = 0; i < kLanes; ++i) p[i] = static_cast<std::int8_t>(x[i]);
  }
  static std::int32_t sum(Ints x) {
    std::int32_t all = 0;
    for (std::size_t i = 0; i < kLanes; ++i) all += x[i];
    return all;
  }
};

}  // namespace

const ProductKernels kAvx2ProductKernels = ProductLoops<Lanes>::all();

}  // namespace ebb
