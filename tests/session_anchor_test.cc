// Where the blocks of a session have their anchors: past the trained context, recalled to the tail, closed up, cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/by_words.h"
#include "tests/sessions.h"

namespace ebb {
namespace {

// No two hot blocks have an anchor in common, and new tokens go behind all of them.
void expect_apart(const Session& session) {
  std::vector<std::pair<Position, BlockIndex>> order;
  for (std::int32_t b = 0; b < session.n_blocks(); ++b) {
    if (session.hot().is_hot(BlockIndex(b))) order.emplace_back(session.anchor(BlockIndex(b)), BlockIndex(b));
  }
  std::ranges::sort(order);
  Position end(0);
  for (const auto& [anchor, block] : order) {
    EXPECT_GE(anchor, end) << "block " << block.value();
    end = anchor + session.hot().span(block).n_tokens();
  }
  EXPECT_GE(session.hot().next_anchor(), end);
}

TEST_F(Sessions, past_the_trained_context_hot_blocks_close_up_and_the_session_goes_on) {
  const auto session = new_session(320);
  say(*session, "quagga " + kLongText);
  for (int turn = 0; turn < 12; ++turn) {
    say(*session, kLongText, {.max_tokens = 4});
    ASSERT_LE(session->hot().next_anchor().value(), 640);
  }
  say(*session, "where", {.max_tokens = 4, .recall = by_words("quagga")});
  EXPECT_GT(session->end().value(), 2 * 640);
  EXPECT_GT(session->stats().n_rebases, 1);
  EXPECT_GT(session->stats().n_moved_blocks, 10);
  EXPECT_GT(last_.from[Origin::kRecalledApproximate], 0) << "they come back to anchors that are not theirs";
}

TEST_F(Sessions, what_was_evicted_after_a_rebase_comes_back_as_it_was_moved) {
  const auto session = new_session(320);
  while (session->stats().n_rebases == 0) say(*session, kLongText, {.max_tokens = 1});
  BlockIndex moved(0);
  while (!session->hot().is_hot(moved) || session->anchor(moved) == session->hot().span(moved).begin) {
    moved = BlockIndex(moved.value() + 1);
    ASSERT_LT(moved.value(), session->n_blocks());
  }
  const auto frames = [&] { return engine_->read_block(*session, moved); };
  const std::vector<std::byte> before = frames();
  session->evict(std::vector{moved});
  ASSERT_FALSE(session->hot().is_hot(moved));
  session->recall(std::vector{moved});
  ASSERT_TRUE(session->hot().is_hot(moved));
  EXPECT_EQ(frames(), before);
}

TEST_F(Sessions, holes_of_an_older_epoch_wait_for_a_question_unless_pinned) {
  const auto session = new_session(320);
  while (session->stats().n_rebases == 0) say(*session, kLongText, {.max_tokens = 1});
  const std::int32_t epoch_begin = session->hot().next_anchor().value();
  ASSERT_FALSE(session->hot().is_hot(BlockIndex(0)));
  session->set_pinned(BlockIndex(1), true);
  std::vector<BlockIndex> hot;
  for (std::int32_t b = 0; b + 1 < session->n_blocks(); ++b) {
    if (session->hot().is_hot(BlockIndex(b))) hot.push_back(BlockIndex(b));
  }
  session->evict(hot);
  const std::vector<BlockIndex> recalled = session->refill(0).recalled;
  hot.insert(hot.begin(), BlockIndex(1));
  EXPECT_THAT(recalled, testing::IsSubsetOf(hot));
  EXPECT_THAT(recalled, testing::Contains(BlockIndex(1)));
  const std::int32_t n_open = session->end().value() % 16;
  EXPECT_EQ(session->hot().next_anchor().value(), epoch_begin + 16 + n_open)
      << "the pinned one came to the tail, before it";
  session->refill(0, {}, Holes::kAll);
  EXPECT_EQ(session->n_hot_blocks(), std::min(session->n_blocks(), session->budget_blocks()));
}

TEST_F(Sessions, compacting_survivors_close_up_at_each_eviction_and_count_as_moved) {
  const auto session = open_session({.budget_tokens = 96, .removal = Removal::kCompact});
  say(*session, kLongText + kLongText, {.max_tokens = 4});
  EXPECT_GT(session->stats().n_moved_blocks, 0);
  EXPECT_EQ(session->hot().next_anchor().value(), session->n_hot_tokens());
}

TEST_F(Sessions, what_is_recalled_to_the_tail_lies_right_before_what_comes_next) {
  const auto session = open_session({.budget_tokens = 160, .recall_place = RecallPlace::kTail});
  say(*session, "quagga " + kLongText + kLongText, {.max_tokens = 1});
  ASSERT_FALSE(session->hot().is_hot(BlockIndex(0)));
  const Position tail = session->hot().next_anchor();
  say(*session, "where", {.max_tokens = 1, .recall = by_words("quagga", 1)});
  ASSERT_EQ(last_.acts.recalled, std::vector{BlockIndex(0)});
  EXPECT_EQ(session->anchor(BlockIndex(0)), tail);
  EXPECT_EQ(last_.from[Origin::kRecalledApproximate], 16);
  EXPECT_EQ(last_.from[Origin::kRecalledExact], 0);
}

TEST_F(Sessions, after_a_cut_new_tokens_go_behind_what_was_recalled_to_the_tail) {
  const auto session = open_session({.budget_tokens = 160, .recall_place = RecallPlace::kTail});
  say(*session, "quagga " + kLongText + kLongText, {.max_tokens = 1});
  say(*session, "where", {.max_tokens = 1, .recall = by_words("quagga", 1)});
  ASSERT_EQ(last_.acts.recalled, std::vector{BlockIndex(0)});
  const Position recalled_end = session->anchor(BlockIndex(0)) + 16;
  session->cut(Position(session->n_blocks() * 16 - 32));
  ASSERT_TRUE(session->hot().is_hot(BlockIndex(0)));
  EXPECT_GE(session->hot().next_anchor(), recalled_end);
  say(*session, "and on", {.max_tokens = 4});
}

TEST_F(Sessions, what_is_recalled_compacted_lies_in_its_order_among_hot_blocks_without_gaps) {
  const auto session = open_session({.budget_tokens = 160, .recall_place = RecallPlace::kCompacted});
  say(*session, "quagga " + kLongText + kLongText, {.max_tokens = 1});
  ASSERT_FALSE(session->hot().is_hot(BlockIndex(0)));
  say(*session, "where", {.max_tokens = 1, .recall = by_words("quagga", 1)});
  ASSERT_EQ(last_.acts.recalled, std::vector{BlockIndex(0)});
  Position next(0);
  for (std::int32_t b = 0; b < session->n_blocks(); ++b) {
    if (!session->hot().is_hot(BlockIndex(b))) continue;
    EXPECT_EQ(session->anchor(BlockIndex(b)), next) << b;
    next = next + session->hot().span(BlockIndex(b)).n_tokens();
  }
  EXPECT_EQ(session->hot().next_anchor(), next);
  EXPECT_GT(session->stats().n_moved_blocks, 0);
}

TEST_F(Sessions, the_open_block_of_a_session_that_goes_on_wakes_where_new_tokens_go) {
  const auto first = new_session(320);
  say(*first, "quagga " + kLongText);
  while (first->stats().n_rebases == 0) say(*first, kLongText, {.max_tokens = 1});
  say(*first, "more", {.max_tokens = 3});
  ASSERT_GT(first->end().value() % 16, 0);
  ASSERT_TRUE(first->save().ok());
  auto session = engine_->restore_session({.budget_tokens = 320}, first->image());
  ASSERT_TRUE(session.ok()) << session.status().message();
  // What left before the rebase comes back to the tail, before the open block does; finish() looks at the anchors.
  say(**session, "where", {.max_tokens = 8, .recall = by_words("quagga")});
  EXPECT_TRUE((*session)->hot().is_hot(BlockIndex(0)));
  expect_apart(**session);
}

TEST_F(Sessions, where_survivors_close_up_what_is_recalled_and_what_comes_next_have_anchors_of_their_own) {
  for (const RecallPlace place : {RecallPlace::kOriginal, RecallPlace::kTail}) {
    const auto session = open_session({.budget_tokens = 96, .recall_place = place, .removal = Removal::kCompact});
    say(*session, "quagga " + kLongText + kLongText, {.max_tokens = 1});
    for (int turn = 0; turn < 4; ++turn) {
      say(*session, "where", {.max_tokens = 4, .recall = by_words("quagga", 1)});
      expect_apart(*session);
    }
    EXPECT_GT(session->stats().n_recalled_blocks, 0);
  }
}

TEST_F(Sessions, after_a_cut_what_has_left_keeps_the_anchors_it_comes_back_to) {
  const auto session = new_session(320);
  say(*session, "quagga " + kLongText);
  while (session->stats().n_rebases == 0) say(*session, kLongText, {.max_tokens = 1});
  say(*session, "where", {.max_tokens = 1, .recall = by_words("quagga", 1)});
  ASSERT_TRUE(session->hot().is_hot(BlockIndex(0)));
  session->evict(std::vector{BlockIndex(0)});
  session->cut(Position(session->end().value() - 100));
  say(*session, kLongText.substr(0, 100), {.max_tokens = 1});
  session->recall(std::vector{BlockIndex(0)});
  ASSERT_TRUE(session->hot().is_hot(BlockIndex(0)));
  expect_apart(*session);
}

}  // namespace
}  // namespace ebb
