#include "model/score_kernels.h"

#include "model/attention.h"
#include "model/score_kernels_body.h"

namespace ebb {

const ScoreKernels kPortableScoreKernels = {.find_logits = ScoreLoops<16>::find_logits,
                                            .sum_weights = ScoreLoops<16>::sum_weights};

const ScoreKernels& score_kernels() {
#if defined(__x86_64__)
  switch (current_kernel_set()) {
    case KernelSet::kAvx512: return kAvx512ScoreKernels;
    case KernelSet::kAvx2: return kAvx2ScoreKernels;
    case KernelSet::kPortable: break;
  }
#endif
  return kPortableScoreKernels;
}

}  // namespace ebb
