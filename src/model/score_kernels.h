// The loops in which scoring keys that left spends its time, for each instruction set.
//
// They see rows of numbers: no heads, digests or threads. Every set does the same additions and products in the same order, element
// by element and never fused, so that all give the same bits. The files that implement them are built for their instruction set,
// so nothing here is a function with a body. Thread rule: pure functions of their arguments.
#pragma once

#include <cstddef>

namespace ebb {

// Keys whose logits are computed side by side; rows of keys are padded to a multiple of it.
inline constexpr std::size_t kScoreLanes = 16;

struct ScoreKernels {
  // logits[row][key] = sum over dims of queries[row][dim] * planes[dim][key], of n_keys, a multiple of kScoreLanes.
  void (*find_logits)(const float* queries, std::size_t n_rows, std::size_t n_dims, const float* planes,
                      std::size_t n_keys, float* logits);
  // The largest of n_keys logits, which is returned, and the sum of exp(logit - that), within 1e-5 of it; slots that are padding
  // have logits far below the others. Where it is below `least`, the sum is not formed: 1, the least that it can be.
  float (*sum_weights)(const float* logits, std::size_t n_keys, float least, float* sum);
};

extern const ScoreKernels kPortableScoreKernels;
#if defined(__x86_64__)
extern const ScoreKernels kAvx2ScoreKernels;
extern const ScoreKernels kAvx512ScoreKernels;
#endif

// Those of current_kernel_set().
[[nodiscard]] const ScoreKernels& score_kernels();

}  // namespace ebb
