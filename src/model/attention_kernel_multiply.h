// How the attention kernels multiply a matrix by vectors.
//
// Part of the kernels' body: see attention_kernel_body.h for V and for why nothing here calls the standard library.
#pragma once

#include <cstdint>

#include "model/attention_kernel.h"
#include "model/attention_kernel_rows.h"

namespace ebb::kernel {

// Columns of multiply() from j on, by some vectors together: they share what is loaded of the matrix.
template <class V, int kVectors, int kColumns>
void multiply_tile(const MatrixView& matrix, std::int32_t j, const VectorsView& vectors, float* products) {
  V sums[kVectors][kColumns];
  for (auto& of_vector : sums) {
    for (V& sum : of_vector) sum = V::broadcast(0.0F);
  }
  const float* row = matrix.data + j;
  for (std::int32_t i = 0; i < matrix.n_rows; ++i, row += matrix.stride) {
    V columns[kColumns];
    for (int c = 0; c < kColumns; ++c) columns[c] = V::load(row + c * kVectorFloats);
    for (int v = 0; v < kVectors; ++v) {
      const V x = V::broadcast(vectors.data[v * vectors.stride + i]);
      for (int c = 0; c < kColumns; ++c) sums[v][c] = V::fma(x, columns[c], sums[v][c]);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    for (int c = 0; c < kColumns; ++c) sums[v][c].store(products + v * matrix.n_columns + j + c * kVectorFloats);
  }
}

template <class V, int kVectors>
void multiply_by(const MatrixView& matrix, const VectorsView& vectors, float* products) {
  constexpr int kColumns = V::template tile_width<kVectors>();
  std::int32_t j = 0;
  for (; j + kColumns * kVectorFloats <= matrix.n_columns; j += kColumns * kVectorFloats) {
    multiply_tile<V, kVectors, kColumns>(matrix, j, vectors, products);
  }
  for (; j < matrix.n_columns; j += kVectorFloats) multiply_tile<V, kVectors, 1>(matrix, j, vectors, products);
}

template <class V>
void multiply(const MatrixView& matrix, const VectorsView& vectors, float* products) {
  constexpr int kTogether = 4;
  std::int32_t v = 0;
  const auto from = [&](std::int32_t first) {
    return VectorsView{.data = vectors.data + first * vectors.stride, .n = kTogether, .stride = vectors.stride};
  };
  for (; v + kTogether <= vectors.n; v += kTogether) {
    multiply_by<V, kTogether>(matrix, from(v), products + v * matrix.n_columns);
  }
  for (; v < vectors.n; ++v) multiply_by<V, 1>(matrix, from(v), products + v * matrix.n_columns);
}

}  // namespace ebb::kernel
