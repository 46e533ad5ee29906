#include <immintrin.h>

#include "bench/multiply_rate.h"
#include "bench/multiply_rate_body.h"

namespace ebb {
namespace {

constexpr int kSums = 24;  // of 32 registers

}  // namespace

double run_int8_avx512vnni(std::int64_t n_loops) {
  const __m512i a = _mm512_set1_epi8(1);
  const __m512i b = _mm512_set1_epi8(2);
  return multiply_round<kSums, __m512i>(n_loops, 2 * 64, [&](__m512i sum) { return _mm512_dpbusd_epi32(sum, a, b); });
}

double run_bf16_avx512vnni(std::int64_t n_loops) {
  const __m512i a = _mm512_set1_epi16(0x3F80);
  const __m512i b = _mm512_set1_epi16(0x3F00);
  return multiply_round<kSums, __m512>(n_loops, 2 * 32, [&](__m512 sum) {
    // As text: this file is compiled for processors that have VNNI and may lack it.
    asm volatile("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  });
}

double run_f32_avx512vnni(std::int64_t n_loops) {
  const __m512 a = _mm512_set1_ps(1.0F);
  const __m512 b = _mm512_set1_ps(0.5F);
  return multiply_round<kSums, __m512>(n_loops, 2 * 16, [&](__m512 sum) { return _mm512_fmadd_ps(a, b, sum); });
}

}  // namespace ebb
