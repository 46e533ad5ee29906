#include <immintrin.h>

#include "bench/multiply_rate.h"

namespace ebb {
namespace {

// More than an instruction's cycles times those begun in one: fewer wait for each other. More do not fit into 32 registers.
constexpr int kSums = 24;

}  // namespace

double run_int8_avx512vnni(std::int64_t n_loops) {
  const __m512i a = _mm512_set1_epi8(1);
  const __m512i b = _mm512_set1_epi8(2);
  __m512i sums[kSums] = {};
  for (std::int64_t i = 0; i < n_loops; ++i) {
#pragma GCC unroll 24
    for (__m512i& sum : sums) {
      sum = _mm512_dpbusd_epi32(sum, a, b);
      // Opaque after each, so that all are done.
      asm volatile("" : "+v"(sum));
    }
  }
  return 2.0 * 64 * kSums * static_cast<double>(n_loops);
}

[[gnu::target("avx512bf16")]] double run_bf16_avx512vnni(std::int64_t n_loops) {
  const __m512bh a = (__m512bh)_mm512_set1_epi16(0x3F80);
  const __m512bh b = (__m512bh)_mm512_set1_epi16(0x3F00);
  __m512 sums[kSums] = {};
  for (std::int64_t i = 0; i < n_loops; ++i) {
#pragma GCC unroll 24
    for (__m512& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, a, b);
      asm volatile("" : "+v"(sum));
    }
  }
  return 2.0 * 32 * kSums * static_cast<double>(n_loops);
}

double run_f32_avx512vnni(std::int64_t n_loops) {
  const __m512 a = _mm512_set1_ps(1.0F);
  const __m512 b = _mm512_set1_ps(0.5F);
  __m512 sums[kSums] = {};
  for (std::int64_t i = 0; i < n_loops; ++i) {
#pragma GCC unroll 24
    for (__m512& sum : sums) {
      sum = _mm512_fmadd_ps(a, b, sum);
      asm volatile("" : "+v"(sum));
    }
  }
  return 2.0 * 16 * kSums * static_cast<double>(n_loops);
}

}  // namespace ebb
