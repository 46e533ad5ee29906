// The loops of model/expected_kernels.h for AVX2.
#include "model/expected_kernels_body.h"

namespace ebb {

const ExpectedKernels kAvx2ExpectedKernels = {.add_products = ExpectedLoops<32>::add_products,
                                              .find_logits = ExpectedLoops<32>::find_logits};

}  // namespace ebb
