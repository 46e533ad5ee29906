// The attention kernels for AVX-512 (F, BW, VL, DQ) with FMA and F16C: a Vector is one register.
#include <immintrin.h>

#include "model/attention_kernel_body.h"

// g++ 12 takes the "undefined" operands inside its own AVX-512 intrinsics for mistakes of ours (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace ebb {
namespace {

using kernel::BF16;
using kernel::F16;

struct Vector {
  static constexpr int kMaxRows = 8;
  // Accumulators of a register tile: 16 to 24 of the 32 registers, at least 4 chains of dependent fma.
  template <int R>
  static constexpr int tile_width() {
    return R == 8 ? 2 : 4;
  }

  __m512 x;

  static Vector load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Vector load(const F16* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(p)))};
  }
  static Vector load(const BF16* p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(p)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
  }
  static Vector load(const std::int8_t* p) {
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i_u*>(p))))};
  }
  // 8 bytes: codes 0..7 in their low halves, 8..15 in their high ones.
  static Vector load_codes(const std::uint8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i_u*>(p));
    const __m128i codes = _mm_and_si128(_mm_unpacklo_epi64(bytes, _mm_srli_epi16(bytes, 4)), _mm_set1_epi8(15));
    return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(codes))};
  }
  void store(float* p) const { _mm512_storeu_ps(p, x); }
  static void store_f16(Vector a, std::uint16_t* p) {
    _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(p), _mm512_cvtps_ph(a.x, _MM_FROUND_TO_NEAREST_INT));
  }

  static Vector broadcast(float a) { return {_mm512_set1_ps(a)}; }
  static Vector broadcast(const F16* p) { return {_mm512_set1_ps(_cvtsh_ss(static_cast<std::uint16_t>(*p)))}; }
  static Vector fma(Vector a, Vector b, Vector c) { return {_mm512_fmadd_ps(a.x, b.x, c.x)}; }
  static Vector mul(Vector a, Vector b) { return {_mm512_mul_ps(a.x, b.x)}; }
  static Vector add(Vector a, Vector b) { return {_mm512_add_ps(a.x, b.x)}; }
  static Vector sub(Vector a, Vector b) { return {_mm512_sub_ps(a.x, b.x)}; }
  static Vector max(Vector a, Vector b) { return {_mm512_max_ps(a.x, b.x)}; }

  static Vector add_exponent(Vector a, Vector n) {
    return {_mm512_castsi512_ps(
        _mm512_add_epi32(_mm512_castps_si512(a.x), _mm512_slli_epi32(_mm512_castps_si512(n.x), 23)))};
  }
  static Vector zero_below(Vector a, float limit, Vector b) {
    return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a.x, _mm512_set1_ps(limit), _CMP_NLT_UQ), b.x)};
  }
  // Elements [begin, end) of a, the rest `other`.
  static Vector keep(Vector a, int begin, int end, float other) {
    const unsigned above = begin <= 0 ? 0xFFFFU : begin >= 16 ? 0U : 0xFFFFU << begin;
    const unsigned below = end >= 16 ? 0xFFFFU : end <= 0 ? 0U : (1U << end) - 1U;
    return {_mm512_mask_mov_ps(_mm512_set1_ps(other), static_cast<__mmask16>(above & below), a.x)};
  }
  // The tree of the promise: elements i and i + 8, then i + 4, i + 2, i + 1.
  static float reduce_add(Vector a) {
    const __m256 x8 = _mm256_add_ps(_mm512_castps512_ps256(a.x), _mm512_extractf32x8_ps(a.x, 1));
    const __m128 x4 = _mm_add_ps(_mm256_castps256_ps128(x8), _mm256_extractf128_ps(x8, 1));
    const __m128 x2 = _mm_add_ps(x4, _mm_movehl_ps(x4, x4));
    return _mm_cvtss_f32(_mm_add_ss(x2, _mm_movehdup_ps(x2)));
  }
  static float reduce_max(Vector a) {
    const __m256 x8 = _mm256_max_ps(_mm512_castps512_ps256(a.x), _mm512_extractf32x8_ps(a.x, 1));
    const __m128 x4 = _mm_max_ps(_mm256_castps256_ps128(x8), _mm256_extractf128_ps(x8, 1));
    const __m128 x2 = _mm_max_ps(x4, _mm_movehl_ps(x4, x4));
    return _mm_cvtss_f32(_mm_max_ss(x2, _mm_movehdup_ps(x2)));
  }
};

}  // namespace

const AttentionKernels kAvx512Kernels = {
    .step_sizes = {1, 2, 4, 6, 8},
    .attend_block = {kernel::attend_plain<Vector, float>, kernel::attend_plain<Vector, F16>,
                     kernel::attend_plain<Vector, BF16>, kernel::attend_scaled<Vector>, kernel::attend_sealed<Vector>},
    .score_diagonals = {kernel::score_plain<Vector, float>, kernel::score_plain<Vector, F16>,
                        kernel::score_plain<Vector, BF16>, kernel::score_scaled<Vector>, kernel::score_sealed<Vector>},
    .exp2_in_place = kernel::exp2_in_place<Vector>,
    .add_slots = kernel::add_slots<Vector>,
    .to_f16 = kernel::to_f16<Vector>,
    .from_f16 = kernel::from_f16<Vector>,
    .from_codes = kernel::from_codes<Vector>,
    .multiply = kernel::multiply<Vector>,
};

}  // namespace ebb
