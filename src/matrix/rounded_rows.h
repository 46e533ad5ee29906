// RoundedRows: rows of activations as signed bytes, what panels of quantised weights are multiplied with.
//
// kBlockValues neighbours of a row have one scale: value = scale * byte, the largest of them 127 or -127 of it. So a row is rounded the same
// whatever stands beside it. Thread rule: a view.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "matrix/weight_kind.h"

namespace ebb {

struct RoundedBlock {
  std::array<std::int8_t, kBlockValues> values;
  float scale;
  float minus_scaled_sum;  // -scale * the sum of the bytes
  std::int32_t minus_sum;
  std::int32_t minus_first_sum;  // of the first half
};

struct RoundedRows {
  RoundedBlock* data = nullptr;  // [n_rows][n_blocks]
  std::size_t n_rows = 0;
  std::size_t n_blocks = 0;
};

// Rows as they are, for weights that are floats.
struct FloatRows {
  const float* data = nullptr;  // [n_rows][n_blocks][kBlockValues]
  std::size_t n_rows = 0;
  std::size_t n_blocks = 0;
};

}  // namespace ebb
