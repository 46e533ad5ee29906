// Keys and values put into frames and read from them through ggml's own conversions, for tests.
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
inline std::size_t key_byte_at(const FrameLayout& layout, std::int32_t slot, std::size_t i) {
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

// And of a value's.
inline std::size_t value_byte_at(const FrameLayout& layout, std::int32_t slot, std::size_t i) {
  const std::size_t row_bytes = ggml_row_size(to_ggml_type(layout.row_type), layout.head_dim_v);
  if (layout.key_order == KeyOrder::kByRow || layout.row_type != RowType::kQ8_0) {
    return layout.v_offset() + to_size(slot) * row_bytes + i;
  }
  const std::size_t group = i / 34;
  const std::size_t in_group = i % 34;
  if (in_group < 2) {
    return layout.v_scales_offset() + (to_size(slot) * to_size(layout.head_dim_v / 32) + group) * 2 + in_group;
  }
  return layout.v_offset() + to_size(slot * layout.head_dim_v) + group * 32 + in_group - 2;
}

using ByteAt = std::size_t (*)(const FrameLayout&, std::int32_t, std::size_t);

inline void put_row(const FrameLayout& layout, std::vector<std::byte>& frame, std::int32_t slot,
                    const std::vector<double>& numbers, ByteAt byte_at) {
  const std::vector<float> x(numbers.begin(), numbers.end());
  const ggml_type type = to_ggml_type(layout.row_type);
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<std::byte> row(ggml_row_size(type, n));
  if (type == GGML_TYPE_F32) {
    std::memcpy(row.data(), x.data(), row.size());
  } else {
    ggml_get_type_traits(type)->from_float_ref(x.data(), row.data(), n);
  }
  for (std::size_t i = 0; i < row.size(); ++i) frame[byte_at(layout, slot, i)] = row[i];
}

inline std::vector<float> get_row(const FrameLayout& layout, const std::vector<std::byte>& frame, std::int32_t slot,
                                  std::int32_t n, ByteAt byte_at) {
  const ggml_type type = to_ggml_type(layout.row_type);
  std::vector<std::byte> row(ggml_row_size(type, n));
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = frame[byte_at(layout, slot, i)];
  std::vector<float> x(to_size(n));
  if (type == GGML_TYPE_F32) {
    std::memcpy(x.data(), row.data(), row.size());
  } else {
    ggml_get_type_traits(type)->to_float(row.data(), x.data(), n);
  }
  return x;
}

inline void put_key(const FrameLayout& layout, std::vector<std::byte>& frame, std::int32_t slot,
                    const std::vector<double>& key) {
  put_row(layout, frame, slot, key, key_byte_at);
}

inline std::vector<float> get_key(const FrameLayout& layout, const std::vector<std::byte>& frame, std::int32_t slot) {
  return get_row(layout, frame, slot, layout.head_dim_k, key_byte_at);
}

inline void put_value(const FrameLayout& layout, std::vector<std::byte>& frame, std::int32_t slot,
                      const std::vector<double>& value) {
  put_row(layout, frame, slot, value, value_byte_at);
}

inline std::vector<float> get_value(const FrameLayout& layout, const std::vector<std::byte>& frame, std::int32_t slot) {
  return get_row(layout, frame, slot, layout.head_dim_v, value_byte_at);
}

}  // namespace ebb::toy
