#include "cache/frame_slots.h"

#include <cstring>

#include "base/check.h"
#include "base/to_size.h"

namespace ebb {
namespace {

// n_rows rows of `stride` bytes each, of which each slot has `slot_bytes`.
struct Plane {
  std::size_t offset;
  std::size_t n_rows;
  std::size_t stride;
  std::size_t slot_bytes;
};

// By dimension: each dimension of K, and each of its groups of scales, is a row over the slots. V, and by row K too, has
// its slots one behind the other.
void for_each_plane(const FrameLayout& layout, auto take) {
  const bool has_scales = layout.row_type == RowType::kQ8_0;
  const auto groups = [](std::int32_t head_dim) { return to_size(head_dim / kScaleGroup); };
  const auto row_bytes = [&](std::int32_t head_dim, bool with_scales) {
    return to_size(head_dim) * layout.element_bytes() + (with_scales ? groups(head_dim) * kScaleBytes : 0);
  };
  const bool by_row = layout.key_order == KeyOrder::kByRow;
  if (by_row) {
    take(Plane{layout.k_offset(), 1, 0, row_bytes(layout.head_dim_k, has_scales)});
    take(Plane{layout.v_offset(), 1, 0, row_bytes(layout.head_dim_v, has_scales)});
    return;
  }
  const std::size_t key_stride = to_size(layout.key_stride());
  take(Plane{layout.k_offset(), to_size(layout.head_dim_k), key_stride * layout.element_bytes(),
             layout.element_bytes()});
  take(Plane{layout.v_offset(), 1, 0, row_bytes(layout.head_dim_v, false)});
  if (!has_scales) return;
  take(Plane{layout.k_scales_offset(), groups(layout.head_dim_k), key_stride * kScaleBytes, kScaleBytes});
  take(Plane{layout.v_scales_offset(), 1, 0, groups(layout.head_dim_v) * kScaleBytes});
}

}  // namespace

void copy_slots(const FrameLayout& layout, std::span<const std::byte> source, std::int32_t from,
                std::span<std::byte> target, std::int32_t to, std::int32_t n_slots) {
  EBB_CHECK(!layout.seals(), "slots of sealed frames have no rows");
  EBB_CHECK(source.size() == layout.frame_bytes() && target.size() == layout.frame_bytes(),
            "frames of {} and {} bytes, not {}", source.size(), target.size(), layout.frame_bytes());
  EBB_CHECK(
      from >= 0 && to >= 0 && n_slots >= 0 && from + n_slots <= layout.block_size && to + n_slots <= layout.block_size,
      "{} slots from {} to {} in frames of {}", n_slots, from, to, layout.block_size);
  for_each_plane(layout, [&](const Plane& plane) {
    for (std::size_t row = 0; row < plane.n_rows; ++row) {
      const std::size_t at = plane.offset + row * plane.stride;
      std::memcpy(target.data() + at + to_size(to) * plane.slot_bytes,
                  source.data() + at + to_size(from) * plane.slot_bytes, to_size(n_slots) * plane.slot_bytes);
    }
  });
}

}  // namespace ebb
