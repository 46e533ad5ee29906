// The loops of model/score_kernels.h for AVX-512 with VNNI.
#include "model/score_kernels_body.h"
#include "model/score_lanes_512.h"

namespace ebb {
namespace {

struct HalfLanes : Lanes256 {
  static Ints add_products(Ints sum, Ints a, Ints b) {
    return Ints(_mm256_dpbusd_epi32(__m256i(sum), __m256i(a), __m256i(b)));
  }
};

struct Lanes : Lanes512 {
  using Half = HalfLanes;
  static Ints add_products(Ints sum, Ints a, Ints b) {
    return Ints(_mm512_dpbusd_epi32(__m512i(sum), __m512i(a), __m512i(b)));
  }
};

}  // namespace

const ScoreKernels kAvx512VnniScoreKernels = ScoreLoops<64, Lanes>::all();

}  // namespace ebb
