// The loops of model/expected_kernels.h, for whatever instruction set the file that includes this is built for.
#pragma once

#include <cstddef>

#include "model/expected_kernels.h"

namespace ebb {
namespace {

// Elements of a triangle's row that stay in registers while rows are added.
constexpr std::size_t kTileProducts = 16;

inline void add_tile(const double* rows, std::size_t n_rows, std::size_t n_dims, std::size_t offset, double* out) {
  double sums[kTileProducts];
  for (std::size_t e = 0; e < kTileProducts; ++e) sums[e] = out[e];
  for (std::size_t r = 0; r < n_rows; ++r) {
    const double* const row = rows + r * n_dims;
    const double x = row[0];
    for (std::size_t e = 0; e < kTileProducts; ++e) sums[e] += x * row[offset + e];
  }
  for (std::size_t e = 0; e < kTileProducts; ++e) out[e] = sums[e];
}

void add_moment_products(const double* rows, std::size_t n_rows, std::size_t n_dims, double* triangle) {
  for (std::size_t i = 0; i < n_dims; ++i) {
    const std::size_t n = n_dims - i;
    std::size_t at = 0;
    for (; at + kTileProducts <= n; at += kTileProducts) add_tile(rows + i, n_rows, n_dims, at, triangle + at);
    for (; at < n; ++at) {
      double sum = triangle[at];
      for (std::size_t r = 0; r < n_rows; ++r) sum += rows[r * n_dims + i] * rows[r * n_dims + i + at];
      triangle[at] = sum;
    }
    triangle += n;
  }
}

void find_expected_logits(const float* mean, const float* spread, const float* keys, std::size_t n_dims, float* out) {
  float logits[kExpectedLanes] = {};
  for (std::size_t i = 0; i < n_dims; ++i) {
    float sums[kExpectedLanes];
    for (float& sum : sums) sum = mean[i];
    const float* const own = keys + i * kExpectedLanes;
    if (spread != nullptr) {
      const std::size_t n = n_dims - i;
      for (std::size_t d = 0; d < n; ++d) {
        const float factor = spread[d];
        const float* const plane = own + d * kExpectedLanes;
        for (std::size_t j = 0; j < kExpectedLanes; ++j) sums[j] += factor * plane[j];
      }
      spread += n;
    }
    for (std::size_t j = 0; j < kExpectedLanes; ++j) logits[j] += own[j] * sums[j];
  }
  for (std::size_t j = 0; j < kExpectedLanes; ++j) out[j] = logits[j];
}

}  // namespace
}  // namespace ebb
