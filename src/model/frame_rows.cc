#include "model/frame_rows.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/to_size.h"
#include "model/attention_work.h"
#include "model/row_convert.h"
#include "model/scaled_row.h"
#include "model/sealed_frame.h"

namespace ebb {
namespace {

// Beyond what f16 holds by far, and its powers are still numbers.
constexpr float kLargest = 1e15F;

void check_frame(const FrameLayout& layout, std::span<const std::byte> frame, std::int32_t n_tokens) {
  EBB_CHECK(n_tokens > 0 && n_tokens <= layout.block_size && frame.size() == layout.frame_bytes(),
            "{} tokens and {} bytes of a frame of {} and {}", n_tokens, frame.size(), layout.block_size,
            layout.frame_bytes());
}

}  // namespace

FrameRows::FrameRows(std::int32_t n_tokens, std::int32_t n_dims)
    : n_dims_(to_size(n_dims)), rows_(to_size(n_tokens) * to_size(n_dims)) {}

void FrameRows::put_plane(std::size_t dim, std::span<const float> plane) {
  for (std::size_t slot = 0; slot < n_tokens(); ++slot) rows_[slot * n_dims_ + dim] = plane[slot];
}

void FrameRows::clear_bad_rows() {
  for (std::size_t slot = 0; slot < n_tokens(); ++slot) {
    const auto own = std::span(rows_).subspan(slot * n_dims_, n_dims_);
    // All are counted, though one is enough: that goes by vectors.
    std::int32_t n_good = 0;
    for (const float x : own) n_good += std::abs(x) <= kLargest ? 1 : 0;
    if (to_size(n_good) < n_dims_) std::ranges::fill(own, 0.0F);
  }
}

FrameRows FrameRows::keys_of(const FrameLayout& layout, std::span<const std::byte> frame, std::int32_t n_tokens) {
  check_frame(layout, frame, n_tokens);
  const AttentionKernels& kernels = current_kernels();
  FrameRows rows(n_tokens, layout.head_dim_k);
  std::array<float, kMaxBlockKeys> plane;
  if (layout.seals()) {
    for (std::int32_t dim = 0; dim < layout.head_dim_k; ++dim) {
      read_sealed_keys(layout, kernels, frame.data(), dim, plane.data());
      rows.put_plane(to_size(dim), plane);
    }
  } else if (layout.row_type == RowType::kQ8_0) {
    for (std::size_t slot = 0; slot < to_size(n_tokens); ++slot) {
      read_scaled(kernels, scaled_key(layout, frame.data(), slot), rows.n_dims_ / kScaleGroup,
                  rows.rows_.data() + slot * rows.n_dims_);
    }
  } else if (layout.key_order == KeyOrder::kByDim) {
    const std::size_t plane_bytes = to_size(layout.key_stride()) * layout.element_bytes();
    for (std::size_t dim = 0; dim < rows.n_dims_; ++dim) {
      const std::byte* const from = frame.data() + layout.k_offset() + dim * plane_bytes;
      read_elements(kernels, layout.row_type, from, n_tokens, plane.data());
      rows.put_plane(dim, plane);
    }
  } else {
    const std::byte* const from = frame.data() + layout.k_offset();
    read_elements(kernels, layout.row_type, from, n_tokens * layout.head_dim_k, rows.rows_.data());
  }
  rows.clear_bad_rows();
  return rows;
}

FrameRows FrameRows::values_of(const FrameLayout& layout, std::span<const std::byte> frame, std::int32_t n_tokens) {
  check_frame(layout, frame, n_tokens);
  const AttentionKernels& kernels = current_kernels();
  FrameRows rows(n_tokens, layout.head_dim_v);
  if (layout.seals()) {
    std::array<float, kMaxHeadDim> row;
    for (std::int32_t slot = 0; slot < n_tokens; ++slot) {
      read_sealed_value(layout, kernels, frame.data(), slot, row.data());
      std::copy_n(row.begin(), rows.n_dims_, rows.rows_.data() + to_size(slot) * rows.n_dims_);
    }
  } else if (layout.row_type == RowType::kQ8_0) {
    for (std::size_t slot = 0; slot < to_size(n_tokens); ++slot) {
      read_scaled(kernels, scaled_value(layout, frame.data(), slot), rows.n_dims_ / kScaleGroup,
                  rows.rows_.data() + slot * rows.n_dims_);
    }
  } else {
    const std::byte* const from = frame.data() + layout.v_offset();
    read_elements(kernels, layout.row_type, from, n_tokens * layout.head_dim_v, rows.rows_.data());
  }
  rows.clear_bad_rows();
  return rows;
}

}  // namespace ebb
