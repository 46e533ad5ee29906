// The loops of model/score_kernels.h for AVX2.
#include "model/score_kernels_body.h"

namespace ebb {

const ScoreKernels kAvx2ScoreKernels = {.find_logits = ScoreLoops<32>::find_logits,
                                        .sum_weights = ScoreLoops<32>::sum_weights};

}  // namespace ebb
