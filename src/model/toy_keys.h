// Keys put into frames and read from them through ggml's own conversions, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <ggml.h>

#include "base/to_size.h"
#include "cache/frame_layout.h"
#include "cache/row_types.h"

namespace ebb::toy {

// Where each byte of a key's ggml row lies in the frame.
inline std::size_t byte_at(const FrameLayout& layout, std::int32_t slot, std::size_t i) {
  const std::size_t row_bytes = ggml_row_size(to_ggml_type(layout.row_type), layout.head_dim_k);
  if (layout.key_order == KeyOrder::kByRow) return layout.k_offset() + to_size(slot) * row_bytes + i;
  const std::size_t stride = to_size(layout.key_stride());
  if (layout.row_type != RowType::kQ8_0) {
    const std::size_t size = layout.element_bytes();
    return layout.k_offset() + (i / size * stride + to_size(slot)) * size + i % size;
  }
  const std::size_t group = i / 34;
  const std::size_t in_group = i % 34;
  if (in_group < 2) return layout.k_scales_offset() + (group * stride + to_size(slot)) * 2 + in_group;
  return layout.k_offset() + (group * 32 + in_group - 2) * stride + to_size(slot);
}

inline void put_key(const FrameLayout& layout, std::vector<std::byte>& frame, std::int32_t slot,
                    const std::vector<double>& key) {
  const std::vector<float> x(key.begin(), key.end());
  const ggml_type type = to_ggml_type(layout.row_type);
  std::vector<std::byte> row(ggml_row_size(type, layout.head_dim_k));
  if (type == GGML_TYPE_F32) {
    std::memcpy(row.data(), x.data(), row.size());
  } else {
    ggml_get_type_traits(type)->from_float_ref(x.data(), row.data(), layout.head_dim_k);
  }
  for (std::size_t i = 0; i < row.size(); ++i) frame[byte_at(layout, slot, i)] = row[i];
}

inline std::vector<float> get_key(const FrameLayout& layout, const std::vector<std::byte>& frame, std::int32_t slot) {
  const ggml_type type = to_ggml_type(layout.row_type);
  std::vector<std::byte> row(ggml_row_size(type, layout.head_dim_k));
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = frame[byte_at(layout, slot, i)];
  std::vector<float> x(to_size(layout.head_dim_k));
  if (type == GGML_TYPE_F32) {
    std::memcpy(x.data(), row.data(), row.size());
  } else {
    ggml_get_type_traits(type)->to_float(row.data(), x.data(), layout.head_dim_k);
  }
  return x;
}

}  // namespace ebb::toy
