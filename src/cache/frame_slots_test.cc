#include "cache/frame_slots.h"

#include <vector>

#include <gtest/gtest.h>

#include "cache/toy_bytes.h"

namespace ebb::frame_slots_test {
namespace {

constexpr std::int32_t kSlots = 24;

std::vector<FrameLayout> layouts() {
  std::vector<FrameLayout> all;
  for (const KeyOrder order : {KeyOrder::kByDim, KeyOrder::kByRow}) {
    for (const RowType type : {RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0}) {
      all.push_back({.row_type = type, .key_order = order, .block_size = kSlots, .head_dim_k = 64, .head_dim_v = 32});
    }
  }
  return all;
}

TEST(FrameSlots, what_is_copied_there_and_back_is_what_it_was_and_all_else_stays) {
  for (const FrameLayout& layout : layouts()) {
    const Bytes source = random_bytes(layout.frame_bytes(), 1);
    const Bytes before = random_bytes(layout.frame_bytes(), 2);
    Bytes target = before;
    copy_slots(layout, source, 3, target, 17, 5);
    ASSERT_NE(target, before);
    Bytes back = source;
    copy_slots(layout, before, 0, back, 3, 5);
    ASSERT_NE(back, source);
    copy_slots(layout, target, 17, back, 3, 5);
    EXPECT_EQ(back, source);
    copy_slots(layout, before, 17, target, 17, 5);
    EXPECT_EQ(target, before);
  }
}

TEST(FrameSlots, by_dimension_each_element_of_a_key_goes_to_the_same_dimension) {
  const FrameLayout layout = {.row_type = RowType::kQ8_0, .block_size = kSlots, .head_dim_k = 64, .head_dim_v = 32};
  const Bytes source = random_bytes(layout.frame_bytes(), 3);
  Bytes target(layout.frame_bytes());
  copy_slots(layout, source, 2, target, 9, 1);
  const auto stride = static_cast<std::size_t>(layout.key_stride());
  for (std::size_t dim = 0; dim < 64; ++dim) EXPECT_EQ(target[dim * stride + 9], source[dim * stride + 2]) << dim;
  for (std::size_t i = 0; i < 2 * 2; ++i) {
    const std::size_t group = layout.k_scales_offset() + i / 2 * stride * 2 + i % 2;
    EXPECT_EQ(target[group + std::size_t{9} * 2], source[group + std::size_t{2} * 2]) << i;
  }
  for (std::size_t dim = 0; dim < 32; ++dim) {
    EXPECT_EQ(target[layout.v_offset() + 9 * 32 + dim], source[layout.v_offset() + 2 * 32 + dim]) << dim;
  }
}

TEST(FrameSlots, of_all_slots_the_whole_frame_is_copied) {
  for (const FrameLayout& layout : layouts()) {
    const Bytes source = random_bytes(layout.frame_bytes(), 4);
    Bytes once(layout.frame_bytes());
    Bytes slot_by_slot(layout.frame_bytes());
    copy_slots(layout, source, 0, once, 0, kSlots);
    for (std::int32_t s = 0; s < kSlots; ++s) copy_slots(layout, source, s, slot_by_slot, s, 1);
    EXPECT_EQ(slot_by_slot, once);
  }
}

}  // namespace
}  // namespace ebb::frame_slots_test
