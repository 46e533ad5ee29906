#include "cache/hot_blocks.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

constexpr Hash128 kName = {.low = 1};

HeadSet heads(std::initializer_list<std::size_t> heads) {
  HeadSet set(4);
  for (const std::size_t head : heads) set.add(head);
  return set;
}

HotBlock unlisted() { return {.frames = std::vector<FrameIndex>(4, kNoFrame)}; }

TEST(HotBlocks, a_block_is_listed_head_by_head) {
  HotBlocks blocks;
  EXPECT_EQ(blocks.find(kName), nullptr);
  blocks.add(kName, {.tokens = {Token(5)}, .anchor = Position(8), .body = {.low = 9}, .frames = unlisted().frames});
  blocks.add_frame(kName, 2, FrameIndex(30));
  blocks.add_frame(kName, 0, FrameIndex(10));
  const HotBlock* const listed = blocks.find(kName);
  ASSERT_NE(listed, nullptr);
  EXPECT_EQ(listed->n_frames, 2);
  EXPECT_EQ(listed->frames, (std::vector{FrameIndex(10), kNoFrame, FrameIndex(30), kNoFrame}));
  EXPECT_EQ(listed->anchor, Position(8));
  EXPECT_EQ(blocks.size(), 1U);
}

TEST(HotBlocks, a_block_may_come_with_its_frames) {
  HotBlocks blocks;
  blocks.add(kName, {.frames = {FrameIndex(1), kNoFrame, FrameIndex(3), kNoFrame}, .n_frames = 2});
  blocks.add_frame(kName, 1, FrameIndex(2));
  blocks.remove_frames(kName, heads({0, 2}));
  EXPECT_EQ(blocks.find(kName)->n_frames, 1);
  blocks.remove_frames(kName, heads({1}));
  EXPECT_EQ(blocks.size(), 0U);
}

TEST(HotBlocks, a_name_goes_with_its_last_frame) {
  HotBlocks blocks;
  for (const std::uint64_t name : {1U, 2U}) {
    blocks.add({.low = name}, unlisted());
    blocks.add_frame({.low = name}, 1, FrameIndex(static_cast<std::int32_t>(name)));
    blocks.add_frame({.low = name}, 3, FrameIndex(7));
  }
  blocks.remove_frames(kName, heads({1}));
  ASSERT_NE(blocks.find(kName), nullptr);
  EXPECT_EQ(blocks.find(kName)->frames[1], kNoFrame);
  blocks.add_frame(kName, 1, FrameIndex(8));
  blocks.remove_frames(kName, heads({1, 3}));
  EXPECT_EQ(blocks.find(kName), nullptr);
  EXPECT_EQ(blocks.find({.low = 2})->n_frames, 2);
}

TEST(HotBlocksDeathTest, it_stops_on_misuse) {
  HotBlocks blocks;
  EXPECT_DEATH(blocks.add_frame(kName, 0, FrameIndex(1)), "is not listed at all");
  EXPECT_DEATH(blocks.remove_frames(kName, heads({0})), "is not listed");
  blocks.add(kName, unlisted());
  EXPECT_DEATH(blocks.add(kName, unlisted()), "is listed already");
  blocks.add_frame(kName, 0, FrameIndex(1));
  EXPECT_DEATH(blocks.add_frame(kName, 0, FrameIndex(2)), "or there already");
  EXPECT_DEATH(blocks.remove_frames(kName, heads({0, 1})), "is not listed in head 1");
}

}  // namespace
}  // namespace ebb
