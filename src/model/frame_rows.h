// The keys and values of one frame as floats, whatever its layout: by dimension or by row, with scales, or sealed.
//
// It reads the bytes of a frame as they lie, keys rotated for their anchor; it does not know blocks, sessions or who asks. A row
// with anything that is no number, or larger than any key or value is, is one of zeros: who squares and adds what is here
// gets finite numbers. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/frame_layout.h"

namespace ebb {

class FrameRows {
 public:
  // Of the tokens in slots [0, n_tokens).
  static FrameRows keys_of(const FrameLayout& layout, std::span<const std::byte> frame, std::int32_t n_tokens);
  static FrameRows values_of(const FrameLayout& layout, std::span<const std::byte> frame, std::int32_t n_tokens);

  [[nodiscard]] std::size_t n_dims() const { return n_dims_; }
  [[nodiscard]] std::size_t n_tokens() const { return rows_.size() / n_dims_; }
  // All of them, one behind the other.
  [[nodiscard]] std::span<const float> rows() const { return rows_; }
  [[nodiscard]] std::span<const float> row(std::size_t slot) const {
    return std::span(rows_).subspan(slot * n_dims_, n_dims_);
  }

 private:
  FrameRows(std::int32_t n_tokens, std::int32_t n_dims);

  void put_plane(std::size_t dim, std::span<const float> plane);
  void clear_bad_rows();

  std::size_t n_dims_;
  std::vector<float> rows_;  // [n_tokens][n_dims]
};

}  // namespace ebb
