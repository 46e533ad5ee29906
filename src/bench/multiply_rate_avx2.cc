#include <immintrin.h>

#include "bench/multiply_rate.h"

namespace ebb {
namespace {

// More than an instruction's cycles times those begun in one: fewer wait for each other. More do not fit into 16 registers.
constexpr int kSums = 12;

}  // namespace

double run_int8_avx2(std::int64_t n_loops) {
  const __m256i a = _mm256_set1_epi8(1);
  __m256i b = _mm256_set1_epi8(2);
  __m256i sums[kSums] = {};
  for (std::int64_t i = 0; i < n_loops; ++i) {
    // Opaque, so that a product that is always the same is not taken out of the loop.
    asm volatile("" : "+x"(b));
#pragma GCC unroll 12
    for (__m256i& sum : sums) {
      __m256i product = _mm256_maddubs_epi16(a, b);
      asm volatile("" : "+x"(product));
      sum = _mm256_add_epi16(sum, product);
      asm volatile("" : "+x"(sum));
    }
  }
  return 2.0 * 32 * kSums * static_cast<double>(n_loops);
}

double run_f32_avx2(std::int64_t n_loops) {
  const __m256 a = _mm256_set1_ps(1.0F);
  const __m256 b = _mm256_set1_ps(0.5F);
  __m256 sums[kSums] = {};
  for (std::int64_t i = 0; i < n_loops; ++i) {
#pragma GCC unroll 12
    for (__m256& sum : sums) {
      sum = _mm256_fmadd_ps(a, b, sum);
      asm volatile("" : "+x"(sum));
    }
  }
  return 2.0 * 8 * kSums * static_cast<double>(n_loops);
}

}  // namespace ebb
