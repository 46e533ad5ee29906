// The loops of model/score_kernels.h for AVX-512.
#include "model/score_kernels_body.h"

namespace ebb {

const ScoreKernels kAvx512ScoreKernels = {.find_logits = ScoreLoops<64>::find_logits,
                                          .sum_weights = ScoreLoops<64>::sum_weights};

}  // namespace ebb
