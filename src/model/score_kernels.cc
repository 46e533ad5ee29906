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
  static Ints repeated(const unsigned char* p, std::size_t /*n*/) { return widened(p); }
  static Floats of_halves(const std::uint16_t* p) {
    Floats x;
    for (int i = 0; i < 4; ++i) x[i] = ggml_fp16_to_fp32(p[i]);
    return x;
  }
  static Floats to_floats(Ints x) { return __builtin_convertvector(x, Floats); }
  static void narrowed(Ints x, unsigned char* p) {
    for (int i = 0; i < 4; ++i) p[i] = static_cast<unsigned char>(x[i]);
  }
  static Ints looked_up(const unsigned char* table, Ints indices) {
    Ints x = {};
    for (int shift = 0; shift < 32; shift += 8) {
      for (int i = 0; i < 4; ++i) x[i] |= table[(indices[i] >> shift) & 15] << shift;
    }
    return x;
  }
  static Ints add_products(Ints sum, Ints a, Ints b) {
    return sum + (a & 0xFF) * ((b << 24) >> 24) + ((a >> 8) & 0xFF) * ((b << 16) >> 24) +
           ((a >> 16) & 0xFF) * ((b << 8) >> 24) + ((a >> 24) & 0xFF) * (b >> 24);
  }
};

}  // namespace

const ScoreKernels kPortableScoreKernels = ScoreLoops<16, Lanes>::all();

const ScoreKernels& score_kernels() {
#if defined(__x86_64__)
  switch (current_kernel_set()) {
    case KernelSet::kAvx512: {
      static const bool kHasVnni = __builtin_cpu_supports("avx512vnni") != 0;
      return kHasVnni ? kAvx512VnniScoreKernels : kAvx512ScoreKernels;
    }
    case KernelSet::kAvx2: return kAvx2ScoreKernels;
    case KernelSet::kPortable: break;
  }
#endif
  return kPortableScoreKernels;
}

}  // namespace ebb
