// The loops of model/expected_kernels.h for AVX2.
#include "model/expected_kernels_body.h"

namespace ebb {

const ExpectedKernels kAvx2ExpectedKernels = {.add_products = add_moment_products, .find_logits = find_expected_logits};

}  // namespace ebb
