// The loops of model/expected_kernels.h for AVX-512. Its longer vectors gain nothing: two of 32 bytes are all lanes.
#include "model/expected_kernels_body.h"

namespace ebb {

const ExpectedKernels kAvx512ExpectedKernels = {.add_products = ExpectedLoops<32>::add_products,
                                                .find_logits = ExpectedLoops<32>::find_logits};

}  // namespace ebb
