// The two loops in which expecting attention spends its time, for each instruction set.
//
// They see rows of numbers: no heads, steps or threads. Every set does the same additions and products in the same order, element
// by element and never fused, so that all give the same bits. The files that implement them are built for their instruction set,
// so nothing here is a function with a body. Thread rule: pure functions of their arguments.
#pragma once

#include <cstddef>

namespace ebb {

// Keys whose logits are computed side by side.
inline constexpr std::size_t kExpectedLanes = 16;

struct ExpectedKernels {
  // triangle += row^T row, of rows [n_rows][n_dims] one after the other; of the product what is on the diagonal or right of it, row
  // behind row.
  void (*add_products)(const double* rows, std::size_t n_rows, std::size_t n_dims, double* triangle);
  // out[j] = sum over dims of k[i][j] * (mean[i] + sum over i2 >= i of spread[i][i2] * k[i2][j]), of keys [n_dims][kExpectedLanes];
  // `spread` is a triangle as above, or null.
  void (*find_logits)(const float* mean, const float* spread, const float* keys, std::size_t n_dims, float* out);
};

extern const ExpectedKernels kPortableExpectedKernels;
#if defined(__x86_64__)
extern const ExpectedKernels kAvx2ExpectedKernels;
extern const ExpectedKernels kAvx512ExpectedKernels;
#endif

// Those of current_kernel_set().
[[nodiscard]] const ExpectedKernels& expected_kernels();

}  // namespace ebb
