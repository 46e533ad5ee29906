#include <immintrin.h>

#include "bench/multiply_rate.h"
#include "bench/multiply_rate_body.h"

namespace ebb {
namespace {

constexpr int kSums = 12;  // of 16 registers

}  // namespace

double run_int8_avx2(std::int64_t n_loops) {
  const __m256i a = _mm256_set1_epi8(1);
  __m256i b = _mm256_set1_epi8(2);
  return multiply_round<kSums, __m256i>(n_loops, 2 * 32, [&](__m256i sum) {
    // Opaque, so that a product that is always the same is computed each time.
    asm volatile("" : "+v"(b));
    return _mm256_add_epi16(sum, _mm256_maddubs_epi16(a, b));
  });
}

double run_f32_avx2(std::int64_t n_loops) {
  const __m256 a = _mm256_set1_ps(1.0F);
  const __m256 b = _mm256_set1_ps(0.5F);
  return multiply_round<kSums, __m256>(n_loops, 2 * 8, [&](__m256 sum) { return _mm256_fmadd_ps(a, b, sum); });
}

}  // namespace ebb
