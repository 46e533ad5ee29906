#include "model/expected_kernels.h"

#include "model/attention.h"
#include "model/expected_kernels_body.h"

namespace ebb {

const ExpectedKernels kPortableExpectedKernels = {.add_products = ExpectedLoops<16>::add_products,
                                                  .find_logits = ExpectedLoops<16>::find_logits};

const ExpectedKernels& expected_kernels() {
#if defined(__x86_64__)
  switch (current_kernel_set()) {
    case KernelSet::kAvx512: return kAvx512ExpectedKernels;
    case KernelSet::kAvx2: return kAvx2ExpectedKernels;
    case KernelSet::kPortable: break;
  }
#endif
  return kPortableExpectedKernels;
}

}  // namespace ebb
