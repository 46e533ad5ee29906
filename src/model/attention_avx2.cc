// The attention kernels for AVX2 with FMA and F16C: a Vector is two registers.
#include <immintrin.h>

#include "model/attention_kernel_body.h"

namespace ebb {
namespace {

using kernel::BF16;
using kernel::F16;

struct Vector {
  static constexpr int kMaxRows = 6;
  // 8 to 12 of the 16 registers accumulate, at least 8 chains of dependent fma.
  template <int R>
  static constexpr int tile_width() {
    return R == 1 ? 4 : R == 2 ? 2 : 1;
  }

  __m256 low, high;

  static __m128i load_128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i_u*>(p)); }
  static Vector load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static Vector load(const F16* p) { return {_mm256_cvtph_ps(load_128(p)), _mm256_cvtph_ps(load_128(p + 8))}; }
  static Vector load(const BF16* p) { return {widen(load_128(p)), widen(load_128(p + 8))}; }
  static Vector load(const std::int8_t* p) {
    const __m128i bytes = load_128(p);
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
  }
  // 8 bytes: codes 0..7 in their low halves, 8..15 in their high ones.
  static Vector load_codes(const std::uint8_t* p) {
    const __m128i half = _mm_set1_epi8(15);
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i_u*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_and_si128(bytes, half))),
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_and_si128(_mm_srli_epi16(bytes, 4), half)))};
  }
  static __m256 widen(__m128i bf16) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bf16), 16)); }
  void store(float* p) const {
    _mm256_storeu_ps(p, low);
    _mm256_storeu_ps(p + 8, high);
  }
  static void store_f16(Vector a, std::uint16_t* p) {
    _mm_storeu_si128(reinterpret_cast<__m128i_u*>(p), _mm256_cvtps_ph(a.low, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(reinterpret_cast<__m128i_u*>(p + 8), _mm256_cvtps_ph(a.high, _MM_FROUND_TO_NEAREST_INT));
  }

  static Vector both(__m256 a) { return {a, a}; }
  static Vector broadcast(float a) { return both(_mm256_set1_ps(a)); }
  static Vector broadcast(const F16* p) { return both(_mm256_set1_ps(_cvtsh_ss(static_cast<std::uint16_t>(*p)))); }
  static Vector fma(Vector a, Vector b, Vector c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static Vector mul(Vector a, Vector b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
  static Vector add(Vector a, Vector b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
  static Vector sub(Vector a, Vector b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
  static Vector max(Vector a, Vector b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }

  static Vector add_exponent(Vector a, Vector n) { return {add_exponent(a.low, n.low), add_exponent(a.high, n.high)}; }
  static __m256 add_exponent(__m256 a, __m256 n) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), _mm256_slli_epi32(_mm256_castps_si256(n), 23)));
  }
  static Vector zero_below(Vector a, float limit, Vector b) {
    const __m256 limits = _mm256_set1_ps(limit);
    return {_mm256_and_ps(_mm256_cmp_ps(a.low, limits, _CMP_NLT_UQ), b.low),
            _mm256_and_ps(_mm256_cmp_ps(a.high, limits, _CMP_NLT_UQ), b.high)};
  }
  // Elements [begin, end) of a, the rest `other`.
  static Vector keep(Vector a, int begin, int end, float other) {
    return {keep(a.low, begin, end, other), keep(a.high, begin - 8, end - 8, other)};
  }
  static __m256 keep(__m256 a, int begin, int end, float other) {
    const __m256i element = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i from = _mm256_cmpgt_epi32(element, _mm256_set1_epi32(begin - 1));
    const __m256i kept = _mm256_and_si256(from, _mm256_cmpgt_epi32(_mm256_set1_epi32(end), element));
    return _mm256_blendv_ps(_mm256_set1_ps(other), a, _mm256_castsi256_ps(kept));
  }
  // The tree of the promise: elements i and i + 8, then i + 4, i + 2, i + 1.
  static float reduce_add(Vector a) {
    const __m256 x8 = _mm256_add_ps(a.low, a.high);
    const __m128 x4 = _mm_add_ps(_mm256_castps256_ps128(x8), _mm256_extractf128_ps(x8, 1));
    const __m128 x2 = _mm_add_ps(x4, _mm_movehl_ps(x4, x4));
    return _mm_cvtss_f32(_mm_add_ss(x2, _mm_movehdup_ps(x2)));
  }
  static float reduce_max(Vector a) {
    const __m256 x8 = _mm256_max_ps(a.low, a.high);
    const __m128 x4 = _mm_max_ps(_mm256_castps256_ps128(x8), _mm256_extractf128_ps(x8, 1));
    const __m128 x2 = _mm_max_ps(x4, _mm_movehl_ps(x4, x4));
    return _mm_cvtss_f32(_mm_max_ss(x2, _mm_movehdup_ps(x2)));
  }
};

}  // namespace

const AttentionKernels kAvx2Kernels = {
    .step_sizes = {1, 2, 4, 6},
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
