// The loops of model/score_kernels.h for AVX2.
#include "model/score_kernels_body.h"
#include "model/score_lanes_256.h"

namespace ebb {

const ScoreKernels kAvx2ScoreKernels = ScoreLoops<32, Lanes256>::all();

}  // namespace ebb
