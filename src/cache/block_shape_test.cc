#include "cache/block_shape.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

constexpr std::int32_t kLayers = 3;
constexpr std::int32_t kHeads = 4;

BlockShape make(std::vector<std::int32_t> windows = {}) {
  return {.n_layers = kLayers, .n_kv_heads = kHeads, .block_size = 16, .windows = std::move(windows)};
}

TEST(BlockShape, heads_are_numbered_by_layer_and_then_by_kv_head) {
  const BlockShape shape = make();
  EXPECT_EQ(shape.frames_per_block(), 12);
  HeadSet all(shape.n_heads());
  for (std::int32_t l = 0; l < kLayers; ++l) {
    const HeadSet of_layer = shape.heads_of(LayerIndex(l));
    EXPECT_EQ(of_layer.count(), kHeads);
    EXPECT_TRUE((all & of_layer).empty());
    for (std::int32_t h = 0; h < kHeads; ++h) EXPECT_TRUE(of_layer.contains(shape.head(LayerIndex(l), HeadIndex(h))));
    all |= of_layer;
  }
  EXPECT_EQ(all, shape.all_heads());
}

TEST(BlockShape, a_layer_sees_all_unless_it_has_a_window) {
  EXPECT_EQ(make().window(LayerIndex(2)), 0);
  EXPECT_EQ(make({0, 512, 0}).window(LayerIndex(1)), 512);
  EXPECT_EQ(make({0, 512, 0}).window(LayerIndex(2)), 0);
}

TEST(BlockShape, tokens_take_whole_blocks) {
  EXPECT_EQ(make().n_blocks(0), 0);
  EXPECT_EQ(make().n_blocks(1), 1);
  EXPECT_EQ(make().n_blocks(16), 1);
  EXPECT_EQ(make().n_blocks(17), 2);
}

TEST(FrameBudget, is_told_in_tokens_that_it_holds_in_every_head) {
  const BlockShape shape = make();
  EXPECT_EQ(FrameBudget::of_tokens(160, shape).n_frames, 120);
  EXPECT_EQ(FrameBudget::of_tokens(175, shape), FrameBudget::of_tokens(160, shape)) << "whole blocks";
  EXPECT_EQ(FrameBudget::of_tokens(15, shape).n_frames, 0);
  const FrameBudget odd = {.n_frames = 131};
  EXPECT_EQ(odd.n_blocks(shape), 10);
  EXPECT_EQ(odd.n_tokens(shape), 160);
  EXPECT_LT(FrameBudget::of_tokens(160, shape), odd);
}

}  // namespace
}  // namespace ebb
