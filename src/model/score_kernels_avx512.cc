// The loops of model/score_kernels.h for AVX-512.
#include "model/score_kernels_body.h"
#include "model/score_lanes_512.h"

namespace ebb {
namespace {

struct Lanes : Lanes512 {
  static Ints add_products(Ints sum, Ints a, Ints b) {
    const __m512i pairs = _mm512_maddubs_epi16(__m512i(a), __m512i(b));
    return sum + Ints(_mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
  }
};

}  // namespace

const ScoreKernels kAvx512ScoreKernels = ScoreLoops<64, Lanes>::all();

}  // namespace ebb
