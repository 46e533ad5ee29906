// Frames that several hot sets use.
#include "cache/hot_set_test.h"

namespace ebb {
namespace {

class HotSetSharedTest : public HotSetTest {
 protected:
  // A session of one whole block that is published, or is to come.
  std::unique_ptr<HotSet> make_first(bool seals = false) {
    auto hot = make(kShape, true, seals);
    say(*hot, 8);
    publish(*hot, kBlock);
    return hot;
  }
  std::unique_ptr<HotSet> make_cold(const HotSet& like) {
    auto hot = make();
    hot->add_cold(like.block_tokens(kBlock), like.info(kBlock).lineage);
    EXPECT_EQ(hot->exact_name(kBlock), like.exact_name(kBlock));
    return hot;
  }
  static void check(std::initializer_list<const HotSet*> sets) {
    for (const HotSet* hot : sets) hot->check_invariants();
  }

  static constexpr BlockIndex kBlock{0};
};

using HotSetSharedDeathTest = HotSetSharedTest;

TEST_F(HotSetSharedTest, a_block_comes_in_the_frames_that_another_published) {
  auto first = make_first();
  const auto second = make_cold(*first);
  EXPECT_NE(second->find_listed(kBlock), nullptr);
  EXPECT_TRUE(second->come(kBlock, kShape.all_heads())->empty()) << "there is nothing to fill";
  EXPECT_EQ(pool_.n_hot(), kPerBlock);
  EXPECT_EQ(second->n_hot_frames(), kPerBlock);
  EXPECT_EQ(second->n_own_frames(kBlock), 0);
  EXPECT_TRUE(first->is_shared(kBlock));
  EXPECT_TRUE(std::ranges::equal(first->frames(kBlock), second->frames(kBlock)));
  check({first.get(), second.get()});
  first.reset();
  EXPECT_EQ(pool_.n_hot(), kPerBlock);
  EXPECT_FALSE(second->is_shared(kBlock));
  second->check_invariants();
  second->leave(kBlock);
  EXPECT_EQ(pool_.n_hot(), 0);
  EXPECT_EQ(shared_.size(), 0U);
}

TEST_F(HotSetSharedTest, a_block_is_shared_in_the_heads_that_others_have) {
  const auto first = make_first();
  first->leave(kBlock, heads({1, 4}));
  const auto second = make_cold(*first);
  EXPECT_EQ(*second->come(kBlock, heads({0, 1, 4, 5})), heads({1, 4}));
  EXPECT_EQ(second->n_own_frames(kBlock), 2);
  EXPECT_EQ(first->n_own_frames(kBlock), 2) << "2 and 3 nobody else came to";
  publish(*second, kBlock);
  EXPECT_TRUE(first->come(kBlock, heads({1, 4}))->empty());
  EXPECT_EQ(pool_.n_hot(), kPerBlock);
  check({first.get(), second.get()});
}

TEST_F(HotSetSharedTest, what_nobody_uses_any_more_is_not_listed_head_by_head) {
  const auto first = make_first();
  const auto second = make_cold(*first);
  ASSERT_TRUE(second->come(kBlock, heads({0, 3})).ok());
  first->leave(kBlock, heads({0, 1}));
  const Hash128 name = first->exact_name(kBlock);
  EXPECT_NE(shared_.find(name)->frames[0], kNoFrame) << "the second has it";
  EXPECT_EQ(shared_.find(name)->frames[1], kNoFrame);
  first->leave(kBlock);
  EXPECT_EQ(shared_.find(name)->n_frames, 2);
  check({first.get(), second.get()});
  second->leave(kBlock);
  EXPECT_EQ(shared_.find(name), nullptr);
}

// What is not listed may not be found by those who share the rest of the block.
TEST_F(HotSetSharedTest, frames_that_came_beside_listed_ones_are_its_own_until_they_are_published) {
  auto first = make_first();
  first->leave(kBlock, heads({1, 2, 3, 4, 5}));
  const auto second = make_cold(*first);
  EXPECT_EQ(*second->come(kBlock, heads({1, 2})), heads({1, 2}));
  first.reset();
  EXPECT_EQ(second->find_listed(kBlock), nullptr);
  second->check_invariants();
  const auto third = make_cold(*second);
  EXPECT_EQ(*third->come(kBlock, heads({1})), heads({1}));
  publish(*second, kBlock);
  publish(*third, kBlock);
  EXPECT_EQ(third->frames(kBlock)[1], second->frames(kBlock)[1]);
  second->leave(kBlock, heads({1}));
  second->leave(kBlock, heads({2}));
  check({second.get(), third.get()});
  EXPECT_EQ(pool_.n_hot(), 1);
}

TEST_F(HotSetSharedTest, a_block_may_insist_on_frames_of_its_own) {
  const auto first = make_first();
  const auto second = make_cold(*first);
  EXPECT_EQ(*second->come(kBlock, kShape.all_heads(), false), kShape.all_heads());
  EXPECT_EQ(pool_.n_hot(), 2 * kPerBlock);
  EXPECT_FALSE(second->is_shared(kBlock));
  check({first.get(), second.get()});
}

TEST_F(HotSetSharedTest, publishing_what_is_listed_gives_its_own_frames_back_for_those) {
  const auto first = make_first();
  const auto second = make();
  say(*second, 8);
  EXPECT_EQ(pool_.n_hot(), 2 * kPerBlock);
  publish(*second, kBlock);
  EXPECT_EQ(pool_.n_hot(), kPerBlock);
  EXPECT_EQ(second->tables().entries(3)[0].frame, first->frames(kBlock)[3]);
  check({first.get(), second.get()});
}

TEST_F(HotSetSharedTest, it_gets_frames_of_its_own_before_it_writes_what_others_use) {
  const auto first = make_first();
  const auto second = make_cold(*first);
  ASSERT_TRUE(second->come(kBlock, heads({0, 1, 2})).ok());
  const FrameIndex shared = first->frames(kBlock)[1];
  ASSERT_TRUE(second->make_own(kBlock).ok());
  EXPECT_EQ(first->frames(kBlock)[1], shared);
  EXPECT_NE(second->frames(kBlock)[1], shared);
  EXPECT_EQ(second->tables().entries(1)[0].frame, second->frames(kBlock)[1]);
  EXPECT_EQ(pool_.n_hot(), kPerBlock + 3);
  second->set_anchor(kBlock, Position(64));
  second->set_turned(kBlock, true);
  check({first.get(), second.get()});
  const FrameIndex own = first->frames(kBlock)[5];
  ASSERT_TRUE(first->make_own(kBlock).ok());
  EXPECT_EQ(first->frames(kBlock)[5], own) << "nobody else used it";
  EXPECT_EQ(shared_.size(), 0U) << "and nobody may come to";
  check({first.get(), second.get()});
}

TEST_F(HotSetSharedTest, frames_of_its_own_that_there_are_not_are_refused_and_nothing_changes) {
  const auto first = make_first();
  const auto second = make_cold(*first);
  ASSERT_TRUE(second->come(kBlock, kShape.all_heads()).ok());
  pool_.set_limit(2 * kPerBlock - 1);
  EXPECT_EQ(second->make_own(kBlock).code(), Code::kOutOfBudget);
  EXPECT_EQ(second->n_own_frames(kBlock), 0);
  check({first.get(), second.get()});
}

TEST_F(HotSetSharedTest, frames_are_found_by_name_tokens_anchor_and_bytes) {
  const auto first = make_first();
  const auto second = make_cold(*first);
  second->set_body(kBlock, {.low = 1}, {});
  EXPECT_NE(second->find_listed(kBlock), nullptr);
  second->set_body(kBlock, {.low = 2}, {});
  EXPECT_EQ(second->find_listed(kBlock), nullptr);
  second->set_body(kBlock, {.low = 1}, {});
  second->set_anchor(kBlock, Position(8));
  EXPECT_EQ(second->find_listed(kBlock), nullptr);
  second->set_anchor(kBlock, Position(0));
  EXPECT_NE(second->find_listed(kBlock), nullptr);
  second->set_variant(kBlock, {.low = 3});
  EXPECT_EQ(second->find_listed(kBlock), nullptr);
  // Another block that happens to have the name.
  const auto other = make();
  other->add_cold(tokens(Position(0), 8, 1), Lineage());
  shared_.add(other->exact_name(kBlock),
              {.tokens = tokens(Position(0), 8), .frames = std::vector<FrameIndex>(6, kNoFrame)});
  EXPECT_EQ(other->find_listed(kBlock), nullptr);
}

TEST_F(HotSetSharedTest, only_whole_blocks_whose_frames_hold_what_their_name_means_are_published) {
  const auto hot = make();
  say(*hot, 13);
  hot->publish(kBlock);
  EXPECT_EQ(shared_.size(), 0U) << "its bytes are not known";
  publish(*hot, BlockIndex(1));
  EXPECT_EQ(shared_.size(), 0U) << "it is not full";
  hot->set_anchor(kBlock, Position(40));
  hot->set_turned(kBlock, true);
  publish(*hot, kBlock);
  EXPECT_EQ(shared_.size(), 0U) << "it was turned";
  const auto alone = make(kShape, false);
  say(*alone, 8);
  publish(*alone, kBlock);
  EXPECT_EQ(shared_.size(), 0U) << "it shares nothing";
  ASSERT_TRUE(alone->make_own(kBlock).ok());
}

TEST_F(HotSetSharedDeathTest, what_others_may_use_does_not_change) {
  const auto hot = make_first();
  EXPECT_DEATH(hot->set_anchor(kBlock, Position(3)), "moves in frames that others may use");
  EXPECT_DEATH(hot->set_turned(kBlock, true), "turned in frames that others may use");
  EXPECT_DEATH(hot->set_variant(kBlock, {.low = 1}), "renamed while others may use its frames");
  EXPECT_DEATH(hot->set_body(kBlock, {.low = 2}, {.low = 1}), "renamed while others may use its frames");
  EXPECT_DEATH(hot->set_lineage(kBlock, Lineage()), "computed again in frames that others may use");
  EXPECT_DEATH(hot->cut(Position(4)), "others may use them");
}

}  // namespace
}  // namespace ebb
