#include "model/score_kernels.h"

#include <ggml.h>

#include "model/attention.h"
#include "model/score_kernels_body.h"

namespace ebb {

namespace {

struct Lanes {
  using Half = Lanes;
  using Floats [[gnu::vector_size(16)]] = float;
  using Ints [[gnu::vector_size(16)]] = std::int32_t;
  using Bytes [[gnu::vector_size(4)]] = unsigned char;
  static Ints widened(const unsigned char* p) {
    Bytes x;
    __builtin_memcpy(&x, p, sizeof x);
    return __builtin_convertvector(x, Ints);
  }
  static Floats of_halves(const std::uint16_t* p) {
    Floats x;
    for (int i = 0; i < 4; ++i) x[i] = ggml_fp16_to_fp32(p[i]);
    return x;
  }
  static Floats to_floats(Ints x) { return __builtin_convertvector(x, Floats); }
  static Ints add_products(Ints sum, Ints a, Ints b) {
    return sum + ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
  }
};

}  // namespace

const ScoreKernels kPortableScoreKernels = ScoreLoops<16, Lanes>::all();

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
