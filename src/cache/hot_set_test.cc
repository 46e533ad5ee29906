// Blocks, rows, frames and tables of one hot set.
#include "cache/hot_set_test.h"

#include <set>

namespace ebb {
namespace {

using HotSetDeathTest = HotSetTest;
using Begins = std::vector<std::int32_t>;

TEST_F(HotSetTest, rows_lie_in_the_last_block_and_in_new_ones_that_are_hot_in_every_head) {
  const auto hot = make();
  EXPECT_EQ(hot->room_in_last_block(), 0);
  ASSERT_TRUE(hot->open(11).ok());
  EXPECT_EQ(hot->end(), Position(0));
  EXPECT_EQ(hot->rows_end(), Position(11));
  EXPECT_EQ(hot->n_blocks(), 2);
  EXPECT_EQ(hot->span(BlockIndex(1)), (Span{Position(8), Position(11)}));
  EXPECT_TRUE(hot->block_tokens(BlockIndex(1)).empty());
  EXPECT_EQ(hot->n_hot_frames(), 2 * kPerBlock);
  std::set<FrameIndex> frames;
  for (std::size_t head = 0; head < kShape.n_heads(); ++head) {
    const std::vector<TableEntry>& entries = hot->tables().entries(head);
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[1].span(), hot->span(BlockIndex(1)));
    EXPECT_EQ(entries[1].frame, hot->frames(BlockIndex(1))[head]);
    for (const TableEntry& entry : entries) frames.insert(entry.frame);
  }
  EXPECT_EQ(std::ssize(frames), pool_.n_hot());
  hot->append(tokens(Position(0), 11));
  EXPECT_EQ(hot->end(), Position(11));
  EXPECT_EQ(hot->next_anchor(), Position(11));
  EXPECT_EQ(hot->room_in_last_block(), 5);
  EXPECT_EQ(hot->block_tokens(BlockIndex(1)).back(), Token(10));
  hot->check_invariants();
  say(*hot, 5);
  EXPECT_EQ(hot->n_blocks(), 2) << "the last block had room";
  EXPECT_EQ(hot->room_in_last_block(), 0);
}

TEST_F(HotSetTest, rows_that_the_pool_has_no_frames_for_are_refused_and_nothing_changes) {
  const auto hot = make();
  say(*hot, 5);
  pool_.set_limit(2 * kPerBlock + 1);
  EXPECT_EQ(hot->open(3 + 8 + 1).code(), Code::kOutOfBudget);
  EXPECT_EQ(hot->n_blocks(), 1);
  EXPECT_EQ(hot->rows_end(), Position(5));
  EXPECT_EQ(hot->tables().entries(0)[0].n_tokens, 5);
  EXPECT_EQ(pool_.n_hot(), kPerBlock);
  hot->check_invariants();
  EXPECT_TRUE(hot->open(3 + 8).ok());
}

TEST_F(HotSetTest, rows_without_tokens_are_taken_back) {
  const auto hot = make();
  say(*hot, 5);
  ASSERT_TRUE(hot->open(20).ok());
  EXPECT_EQ(hot->tables().end(), Position(25));
  hot->append(tokens(Position(5), 4));
  hot->drop_rows();
  EXPECT_EQ(hot->rows_end(), Position(9));
  EXPECT_EQ(hot->n_blocks(), 2);
  EXPECT_EQ(hot->tables().end(), Position(9));
  EXPECT_EQ(hot->tables().entries(5)[1].n_tokens, 1);
  EXPECT_EQ(pool_.n_hot(), 2 * kPerBlock);
  hot->check_invariants();
  hot->cut(Position(0));
  hot->set_next_anchor(Position(0));
  ASSERT_TRUE(hot->open(3).ok());
  hot->drop_rows();
  EXPECT_EQ(hot->n_blocks(), 0);
  EXPECT_EQ(pool_.n_hot(), 0);
  hot->check_invariants();
}

TEST_F(HotSetTest, a_block_leaves_in_some_heads_and_stays_in_the_others) {
  const auto hot = make();
  say(*hot, 11);
  hot->leave(BlockIndex(0), heads({5}));
  EXPECT_FALSE(hot->is_hot(BlockIndex(0)));
  EXPECT_FALSE(hot->is_hot(BlockIndex(0), 5));
  EXPECT_TRUE(hot->is_hot(BlockIndex(0), 4));
  EXPECT_EQ(begins(*hot, 5), Begins{8});
  EXPECT_EQ(begins(*hot, 4), (Begins{0, 8}));
  EXPECT_EQ(hot->missing_heads(BlockIndex(0)), heads({5}));
  EXPECT_EQ(pool_.n_hot(), 2 * kPerBlock - 1);
  hot->leave(BlockIndex(0), heads({5}));
  EXPECT_EQ(pool_.n_hot(), 2 * kPerBlock - 1) << "it had left already";
  hot->check_invariants();
  hot->leave(BlockIndex(0));
  EXPECT_TRUE(hot->frames(BlockIndex(0)).empty());
  EXPECT_EQ(std::vector(hot->hot_blocks().begin(), hot->hot_blocks().end()), indices({1}));
  hot->check_invariants();
}

TEST_F(HotSetTest, a_block_comes_back_in_the_heads_that_it_left) {
  const auto hot = make();
  say(*hot, 17);
  const FrameIndex kept = hot->frames(BlockIndex(1))[0];
  hot->leave(BlockIndex(1), heads({1, 4, 5}));
  const Result<HeadSet> fill = hot->come(BlockIndex(1), heads({4, 1}));
  ASSERT_TRUE(fill.ok());
  EXPECT_EQ(*fill, heads({1, 4}));
  EXPECT_EQ(hot->frames(BlockIndex(1))[0], kept);
  EXPECT_EQ(begins(*hot, 4), (Begins{0, 8, 16})) << "between its neighbours";
  EXPECT_EQ(begins(*hot, 5), (Begins{0, 16}));
  EXPECT_FALSE(hot->is_hot(BlockIndex(1)));
  ASSERT_TRUE(hot->come(BlockIndex(1), heads({5})).ok());
  EXPECT_TRUE(hot->is_hot(BlockIndex(1)));
  EXPECT_EQ(hot->n_hot_frames(), 3 * kPerBlock);
  hot->check_invariants();
}

TEST_F(HotSetTest, a_block_that_finds_no_frames_stays_away_and_nothing_changes) {
  const auto hot = make();
  say(*hot, 8);
  hot->leave(BlockIndex(0));
  pool_.set_limit(3);
  EXPECT_EQ(hot->come(BlockIndex(0), heads({0, 1, 2, 3})).status().code(), Code::kOutOfBudget);
  EXPECT_EQ(hot->n_hot_frames(), 0);
  EXPECT_EQ(pool_.n_hot(), 0);
  EXPECT_TRUE(hot->hot_blocks().empty());
  hot->check_invariants();
}

TEST_F(HotSetTest, a_cold_block_stands_behind_the_last_one_and_comes_later) {
  const auto hot = make();
  say(*hot, 8);
  Lineage lineage;
  lineage.add(hot->visible_behind(), 8);
  const BlockIndex whole = hot->add_cold(tokens(Position(8), 8), lineage);
  const BlockIndex part = hot->add_cold(tokens(Position(16), 3), Lineage());
  EXPECT_EQ(hot->end(), Position(19));
  EXPECT_EQ(hot->anchor(part), Position(16));
  EXPECT_EQ(hot->next_anchor(), Position(19));
  EXPECT_EQ(hot->n_hot_frames(), kPerBlock);
  EXPECT_EQ(hot->room_in_last_block(), 0) << "it is not hot";
  hot->check_invariants();
  ASSERT_TRUE(hot->come(whole, kShape.all_heads()).ok());
  ASSERT_TRUE(hot->come(part, kShape.all_heads()).ok());
  EXPECT_EQ(begins(*hot, 2), (Begins{0, 8, 16}));
  EXPECT_EQ(hot->room_in_last_block(), 5);
  say(*hot, 6);
}

TEST_F(HotSetTest, a_cut_forgets_blocks_and_parts_of_one) {
  const auto hot = make();
  say(*hot, 30);
  hot->leave(BlockIndex(0));
  hot->cut(Position(19));
  hot->set_next_anchor(Position(19));
  EXPECT_EQ(hot->n_blocks(), 3);
  EXPECT_EQ(hot->end(), Position(19));
  EXPECT_EQ(hot->tables().entries(1).back().n_tokens, 3);
  EXPECT_EQ(hot->info(BlockIndex(2)).lineage.runs().back().n_tokens, 3);
  hot->check_invariants();
  say(*hot, 2, 1);
  hot->cut(Position(16));
  EXPECT_EQ(hot->n_blocks(), 2);
  EXPECT_EQ(pool_.n_hot(), kPerBlock);
  hot->cut(Position(0));
  EXPECT_EQ(hot->n_blocks(), 0);
  EXPECT_EQ(pool_.n_hot(), 0);
  hot->check_invariants();
}

TEST_F(HotSetTest, all_frames_go_back_when_it_dies) {
  auto hot = make(kShape, true, true);
  say(*hot, 21);
  hot->leave(BlockIndex(1), heads({0, 2}));
  publish(*hot, BlockIndex(0));
  hot.reset();
  EXPECT_EQ(pool_.n_hot(), 0);
  EXPECT_EQ(open_pool_.n_hot(), 0);
  EXPECT_EQ(shared_.size(), 0U);
  pool_.check_invariants();
}

TEST_F(HotSetTest, notes_stay_with_their_block) {
  const auto hot = make();
  say(*hot, 16);
  hot->notes(BlockIndex(1)) = {.pinned = true, .last_access = 4};
  hot->leave(BlockIndex(1));
  EXPECT_TRUE(hot->notes(BlockIndex(1)).pinned);
  EXPECT_EQ(hot->notes(BlockIndex(1)).last_access, 4);
  EXPECT_FALSE(hot->notes(BlockIndex(0)).pinned);
}

// --- open frames ---

TEST_F(HotSetTest, the_block_that_is_written_to_is_open_until_it_is_full) {
  const auto hot = make(kShape, true, true);
  say(*hot, 13);
  EXPECT_FALSE(hot->is_open(BlockIndex(0))) << "its rows came at once, and were sealed";
  EXPECT_TRUE(hot->is_open(BlockIndex(1)));
  EXPECT_EQ(open_pool_.n_hot(), kPerBlock);
  EXPECT_EQ(hot->tables().entries(4)[1].open, hot->open_frames(BlockIndex(1))[4]);
  ASSERT_TRUE(hot->hold_open(BlockIndex(1)).ok());
  EXPECT_EQ(open_pool_.n_hot(), kPerBlock) << "it is open already";
  say(*hot, 3);
  EXPECT_FALSE(hot->is_open(BlockIndex(1)));
  EXPECT_EQ(hot->tables().entries(4)[1].open, kNoFrame);
  EXPECT_EQ(open_pool_.n_hot(), 0);
}

TEST_F(HotSetTest, an_open_block_leaves_and_comes_back_in_single_heads) {
  const auto hot = make(kShape, true, true);
  say(*hot, 5);
  const BlockIndex block(0);
  const std::vector<FrameIndex> open(hot->open_frames(block).begin(), hot->open_frames(block).end());
  hot->leave(block, heads({1, 2}));
  hot->check_invariants();
  EXPECT_TRUE(hot->is_open(block)) << "rows of the other heads lie nowhere else";
  EXPECT_EQ(open_pool_.n_hot(), kPerBlock - 2);
  EXPECT_EQ(hot->tables().entries(0)[0].open, open[0]);
  EXPECT_EQ(hot->room_in_last_block(), 0);
  ASSERT_TRUE(hot->come(block, heads({1, 2})).ok());
  ASSERT_TRUE(hot->hold_open(block).ok());
  hot->check_invariants();
  for (const std::size_t head : {0U, 3U, 4U, 5U}) EXPECT_EQ(hot->open_frames(block)[head], open[head]);
  EXPECT_EQ(open_pool_.n_hot(), kPerBlock);
  hot->leave(block);
  EXPECT_FALSE(hot->is_open(block));
  EXPECT_EQ(open_pool_.n_hot(), 0);
}

TEST_F(HotSetTest, rows_that_find_no_open_frames_are_refused_and_nothing_changes) {
  const auto first = make(kShape, true, true);
  const auto second = make(kShape, true, true);
  const auto third = make(kShape, true, true);
  say(*first, 1);
  say(*second, 1);
  const std::int32_t n_hot = pool_.n_hot();
  EXPECT_EQ(third->open(9).code(), Code::kOutOfBudget);
  EXPECT_EQ(third->n_blocks(), 0);
  EXPECT_EQ(pool_.n_hot(), n_hot);
  third->check_invariants();
  EXPECT_TRUE(third->open(16).ok()) << "whole blocks are never open";
}

TEST_F(HotSetTest, nothing_is_open_where_blocks_have_one_form) {
  const auto hot = make();
  say(*hot, 5);
  ASSERT_TRUE(hot->hold_open(BlockIndex(0)).ok());
  EXPECT_FALSE(hot->is_open(BlockIndex(0)));
  hot->seal(BlockIndex(0));
  hot->cut(Position(3));
  hot->set_next_anchor(Position(3));
  hot->check_invariants();
}

// --- misuse ---

TEST_F(HotSetDeathTest, it_stops_on_misuse) {
  const auto hot = make();
  EXPECT_DEATH(hot->append(tokens(Position(0), 1)), "1 tokens at 0, and rows up to 0");
  say(*hot, 6);
  ASSERT_TRUE(hot->open(1).ok());
  EXPECT_DEATH((void)hot->open(1), "rows for 1 tokens behind 7, and 6 has none yet");
  EXPECT_DEATH(hot->cut(Position(3)), "a cut at 3 of 6");
  hot->drop_rows();
  EXPECT_DEATH(hot->leave(BlockIndex(1)), "block 1 of 1");
  EXPECT_DEATH((void)hot->come(BlockIndex(0), heads({2})), "block 0 comes in head 2, where it is");
  EXPECT_DEATH(hot->add_cold(tokens(Position(6), 1), Lineage()), "1 tokens at 6");
  hot->leave(BlockIndex(0), heads({2}));
  EXPECT_DEATH((void)hot->open(1), "rows behind block 0, which is hot in 5 heads of 6");
}

TEST_F(HotSetDeathTest, a_sealed_block_is_not_cut_in_two) {
  const auto hot = make(kShape, true, true);
  say(*hot, 8);
  EXPECT_DEATH(hot->cut(Position(4)), "cut while its rows are sealed");
}

}  // namespace
}  // namespace ebb
