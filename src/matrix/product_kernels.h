// The loops in which matrix products spend their time, for each instruction set.
//
// They see panels and rows of numbers: no threads, no models. Every set gives the same bits: products of bytes are added as whole numbers,
// exactly; what is left is one order of fused additions, block by block, for each row and each output by itself. Floats are added up block by
// block, within each value by value (decisions/0034). The files
// that implement them are built for their instruction set, so nothing here is a function with a body. Thread rule: pure functions of
// their arguments.
#pragma once

#include <array>
#include <cstddef>

#include "matrix/rounded_rows.h"
#include "matrix/weight_kind.h"

namespace ebb {

// A panel with a byte for each code and floats for its scales and leasts: the same numbers as packed, for products of many rows.
//
//   codes   [block][8 quads][16 rows][4]
//   scales  [block][scales, then the least if there is one][16 rows]
struct WidePanel {
  const std::byte* codes = nullptr;
  const float* scales = nullptr;
};

// out[row * stride + i]: a row with the i-th row of weights of a panel, of which n are there.
struct ProductOut {
  float* data = nullptr;
  std::size_t stride = 0;
  std::size_t n = 0;
};

struct ProductKernels {
  // [n_blocks][kBlockValues] -> the same.
  void (*round_row)(const float* from, std::size_t n_blocks, RoundedBlock* to);
  // All rows with a panel as it is packed: for few of them.
  void (*multiply)(WeightKind kind, const std::byte* panel, const RoundedRows& rows, const ProductOut& out);
  // `memory`: wide_panel_bytes, aligned to 64.
  WidePanel (*widen)(WeightKind kind, const std::byte* panel, std::size_t n_blocks, std::byte* memory);
  // All rows with two panels side by side, for many of them. Of a single one give it twice, and to the second no outputs.
  void (*multiply_wide)(WeightKind kind, const std::array<WidePanel, 2>& panels, const RoundedRows& rows,
                        const std::array<ProductOut, 2>& out);
  // The same of weights that are floats, of which wide panels have 32 bits; those that have are not copied.
  void (*multiply_floats)(WeightKind kind, const std::byte* panel, const FloatRows& rows, const ProductOut& out);
  const float* (*widen_floats)(WeightKind kind, const std::byte* panel, std::size_t n_blocks, std::byte* memory);
  void (*multiply_wide_floats)(const std::array<const float*, 2>& panels, const FloatRows& rows,
                               const std::array<ProductOut, 2>& out);
};

extern const ProductKernels kPortableProductKernels;
#if defined(__x86_64__)
extern const ProductKernels kAvx2ProductKernels;
extern const ProductKernels kAvx512VnniProductKernels;
#endif

}  // namespace ebb
