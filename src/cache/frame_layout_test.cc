#include "cache/frame_layout.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ebb {
namespace {

constexpr RowType kOneForm[] = {RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0};

TEST(FrameLayout, names_of_row_types_lead_back_to_them) {
  for (std::size_t i = 0; i < kRowTypes; ++i) {
    const auto type = static_cast<RowType>(i);
    EXPECT_EQ(find_row_type(row_type_name(type)), type);
  }
  EXPECT_EQ(find_row_type("q4_0"), std::nullopt);
}

TEST(FrameLayout, refuses_sizes_that_no_kernel_serves) {
  const FrameLayout good{.head_dim_k = 64, .head_dim_v = 128};
  EXPECT_TRUE(good.validate().ok());
  for (const std::int32_t block_size : {-1, 0, 129}) {
    FrameLayout layout = good;
    layout.block_size = block_size;
    EXPECT_EQ(layout.validate().code(), Code::kUnsupported) << block_size;
  }
  for (const std::int32_t head_dim : {-1, 0, 1025}) {
    FrameLayout layout = good;
    layout.head_dim_k = head_dim;
    EXPECT_EQ(layout.validate().code(), Code::kUnsupported) << head_dim;
    layout = good;
    layout.head_dim_v = head_dim;
    EXPECT_EQ(layout.validate().code(), Code::kUnsupported) << head_dim;
  }
  FrameLayout quantised = good;
  quantised.row_type = RowType::kQ8_0;
  EXPECT_TRUE(quantised.validate().ok());
  quantised.head_dim_v = 80;
  EXPECT_EQ(quantised.validate().code(), Code::kUnsupported);
}

TEST(FrameLayout, planes_follow_each_other_on_cache_lines_and_hold_their_elements) {
  for (const RowType type : kOneForm) {
    for (const std::int32_t block_size : {8, 31, 64, 128}) {
      for (const std::int32_t head_dim : {32, 96}) {
        const FrameLayout layout{
            .row_type = type, .block_size = block_size, .head_dim_k = head_dim, .head_dim_v = 2 * head_dim};
        const auto stride = static_cast<std::size_t>(layout.key_stride());
        const auto dim = static_cast<std::size_t>(head_dim);
        const auto slots = static_cast<std::size_t>(block_size);
        const std::size_t scales = type == RowType::kQ8_0 ? 2 : 0;
        EXPECT_GE(layout.k_scales_offset(), stride * dim * layout.element_bytes());
        EXPECT_GE(layout.v_offset(), layout.k_scales_offset() + stride * dim / 32 * scales);
        EXPECT_GE(layout.v_scales_offset(), layout.v_offset() + slots * 2 * dim * layout.element_bytes());
        EXPECT_GE(layout.frame_bytes(), layout.v_scales_offset() + slots * 2 * dim / 32 * scales);
        for (const std::size_t offset :
             {layout.k_scales_offset(), layout.v_offset(), layout.v_scales_offset(), layout.frame_bytes()}) {
          EXPECT_EQ(offset % 64, 0U);
        }
        EXPECT_LT(static_cast<double>(layout.frame_bytes()),
                  layout.token_bytes() * static_cast<double>(stride) + 4 * 64);
      }
    }
  }
}

TEST(FrameLayout, sealed_planes_hold_half_a_byte_for_each_value_and_two_halves_for_each_run) {
  for (const std::int32_t block_size : {8, 31, 64, 128}) {
    for (const std::int32_t head_dim : {1, 40, 64, 128}) {
      const FrameLayout layout{
          .row_type = RowType::kKivi4, .block_size = block_size, .head_dim_k = head_dim, .head_dim_v = head_dim};
      ASSERT_TRUE(layout.validate().ok());
      const auto stride = static_cast<std::size_t>(layout.key_stride());
      const auto dim = static_cast<std::size_t>(head_dim);
      const auto slots = static_cast<std::size_t>(block_size);
      EXPECT_GE(layout.k_scales_offset(), stride * dim / 2);
      EXPECT_GE(layout.v_offset(), layout.k_scales_offset() + 4 * dim);
      EXPECT_GE(layout.v_scales_offset(), layout.v_offset() + slots * ((dim + 15) / 16 * 16) / 2);
      EXPECT_GE(layout.frame_bytes(), layout.v_scales_offset() + slots * 4 * ((dim + 31) / 32));
      EXPECT_EQ(layout.frame_bytes() % 64, 0U);
    }
  }
}

TEST(FrameLayout, sealed_frames_of_common_heads_take_under_five_bits_a_value) {
  for (const std::int32_t head_dim : {64, 128, 256}) {
    const FrameLayout layout{.row_type = RowType::kKivi4, .head_dim_k = head_dim, .head_dim_v = head_dim};
    const double n_values = 2.0 * layout.block_size * head_dim;
    EXPECT_LE(8.0 * static_cast<double>(layout.frame_bytes()) / n_values, 4.75);
    EXPECT_EQ(layout.token_bytes() * layout.block_size, static_cast<double>(layout.frame_bytes()));
  }
}

TEST(FrameLayout, open_blocks_of_a_sealing_layout_are_f16_and_others_have_one_form) {
  const FrameLayout sealing{.row_type = RowType::kKivi4, .head_dim_k = 64, .head_dim_v = 32};
  EXPECT_TRUE(sealing.seals());
  EXPECT_EQ(sealing.open_layout(), (FrameLayout{.row_type = RowType::kF16, .head_dim_k = 64, .head_dim_v = 32}));
  for (const RowType type : kOneForm) {
    const FrameLayout layout{.row_type = type, .head_dim_k = 64, .head_dim_v = 32};
    EXPECT_FALSE(layout.seals());
    EXPECT_EQ(layout.open_layout(), layout);
  }
}

TEST(FrameLayout, refuses_sealed_rows_in_ggml_order_with_what_to_choose) {
  const FrameLayout layout{
      .row_type = RowType::kKivi4, .key_order = KeyOrder::kByRow, .head_dim_k = 64, .head_dim_v = 64};
  EXPECT_EQ(layout.validate().code(), Code::kUnsupported);
  EXPECT_NE(layout.validate().message().find("choose f16"), std::string::npos);
}

TEST(FrameLayout, rows_in_ggml_order_take_ggmls_bytes) {
  const FrameLayout layout{
      .row_type = RowType::kQ8_0, .key_order = KeyOrder::kByRow, .head_dim_k = 64, .head_dim_v = 32};
  EXPECT_EQ(layout.v_offset(), 64U * 68U);
  EXPECT_EQ(layout.frame_bytes(), 64U * (68U + 34U));
  EXPECT_EQ(layout.token_bytes(), 102.0);
}

TEST(FrameLayout, every_difference_changes_the_fingerprint) {
  const FrameLayout base{.head_dim_k = 64, .head_dim_v = 64};
  std::vector<FrameLayout> layouts(6, base);
  layouts[1].row_type = RowType::kBF16;
  layouts[2].key_order = KeyOrder::kByRow;
  layouts[3].block_size = 32;
  layouts[4].head_dim_k = 32;
  layouts[5].head_dim_v = 32;
  for (std::size_t a = 0; a < layouts.size(); ++a) {
    for (std::size_t b = 0; b < layouts.size(); ++b) {
      EXPECT_EQ(layouts[a].fingerprint() == layouts[b].fingerprint(), a == b) << a << " " << b;
    }
  }
}

}  // namespace
}  // namespace ebb
