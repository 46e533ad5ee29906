// The loops of model/score_kernels.h for AVX-512.
#include "model/score_kernels_body.h"
#include "model/score_lanes_256.h"

namespace ebb {
namespace {

struct Lanes {
  using Half = Lanes256;
  using Floats [[gnu::vector_size(64)]] = float;
  using Ints [[gnu::vector_size(64)]] = std::int32_t;
  static Ints widened(const unsigned char* p) {
    return Ints(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static Floats of_halves(const std::uint16_t* p) {
    return Floats(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
  }
  static Floats to_floats(Ints x) { return __builtin_convertvector(x, Floats); }
  static Ints add_products(Ints sum, Ints a, Ints b) { return sum + Ints(_mm512_madd_epi16(__m512i(a), __m512i(b))); }
};

}  // namespace

const ScoreKernels kAvx512ScoreKernels = ScoreLoops<64, Lanes>::all();

}  // namespace ebb
