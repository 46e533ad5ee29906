#include "model/key_digest.h"

#include <array>
#include <cmath>

#include "base/check.h"
#include "base/to_size.h"
#include "model/attention_work.h"
#include "model/row_convert.h"
#include "model/scaled_key.h"
#include "model/sealed_frame.h"

namespace ebb {
namespace {

// Keys of one frame as floats, [n_tokens][head_dim_k].
class FrameKeys {
 public:
  FrameKeys(const FrameLayout& layout, const std::byte* frame, std::int32_t n_tokens)
      : layout_(layout),
        frame_(frame),
        n_tokens_(n_tokens),
        kernels_(current_kernels()),
        rows_(to_size(n_tokens) * to_size(layout.head_dim_k)) {
    if (layout.seals()) {
      read_sealed();
    } else if (layout.row_type == RowType::kQ8_0) {
      read_scaled_rows();
    } else if (layout.key_order == KeyOrder::kByDim) {
      read_planes();
    } else {
      read_rows();
    }
  }

  [[nodiscard]] std::span<const float> row(std::int32_t slot) const {
    return std::span(rows_).subspan(to_size(slot) * n_dims(), n_dims());
  }

 private:
  [[nodiscard]] std::size_t n_dims() const { return to_size(layout_.head_dim_k); }

  void put_plane(std::int32_t dim, const float* plane) {
    for (std::size_t slot = 0; slot < to_size(n_tokens_); ++slot) rows_[slot * n_dims() + to_size(dim)] = plane[slot];
  }

  void read_planes() {
    const std::size_t plane_bytes = to_size(layout_.key_stride()) * layout_.element_bytes();
    std::array<float, kMaxBlockKeys> plane;
    for (std::int32_t dim = 0; dim < layout_.head_dim_k; ++dim) {
      const std::byte* const from = frame_ + layout_.k_offset() + to_size(dim) * plane_bytes;
      read_elements(kernels_, layout_.row_type, from, n_tokens_, plane.data());
      put_plane(dim, plane.data());
    }
  }

  void read_sealed() {
    std::array<float, kMaxBlockKeys> plane;
    for (std::int32_t dim = 0; dim < layout_.head_dim_k; ++dim) {
      read_sealed_keys(layout_, kernels_, frame_, dim, plane.data());
      put_plane(dim, plane.data());
    }
  }

  void read_rows() {
    const std::byte* const from = frame_ + layout_.k_offset();
    read_elements(kernels_, layout_.row_type, from, n_tokens_ * layout_.head_dim_k, rows_.data());
  }

  void read_scaled_rows() {
    for (std::size_t slot = 0; slot < to_size(n_tokens_); ++slot) {
      read_scaled(kernels_, scaled_key(layout_, frame_, slot), n_dims() / kScaleGroup, rows_.data() + slot * n_dims());
    }
  }

  const FrameLayout& layout_;
  const std::byte* frame_;
  std::int32_t n_tokens_;
  const AttentionKernels& kernels_;
  std::vector<float> rows_;
};

double length_of(std::span<const float> key) {
  double sum = 0.0;
  for (const float x : key) sum += double{x} * double{x};
  return std::isfinite(sum) ? std::sqrt(sum) : 0.0;
}

}  // namespace

KeyDigest digest_keys(const FrameLayout& layout, std::span<const std::byte> frame, std::int32_t n_tokens) {
  EBB_CHECK(n_tokens > 0 && n_tokens <= layout.block_size && frame.size() == layout.frame_bytes(),
            "{} tokens and {} bytes of a frame of {} and {}", n_tokens, frame.size(), layout.block_size,
            layout.frame_bytes());
  const FrameKeys keys(layout, frame.data(), n_tokens);
  double norm = 0.0;
  std::vector<double> direction(to_size(layout.head_dim_k), 0.0);
  for (std::int32_t slot = 0; slot < n_tokens; ++slot) {
    const std::span<const float> key = keys.row(slot);
    const double length = length_of(key);
    norm += length;
    for (std::size_t d = 0; length > 0.0 && d < key.size(); ++d) direction[d] += double{key[d]} / length;
  }
  KeyDigest digest{.norm = static_cast<float>(norm / n_tokens)};
  for (const double x : direction) digest.direction.push_back(static_cast<float>(x / n_tokens));
  return digest;
}

}  // namespace ebb
