// Sharing: sessions that say the same use the same frames, and nobody notices; step by step.
#include "tests/sharing.h"

#include <array>
#include <cstring>

namespace ebb {
namespace {

TEST_P(Sharing, a_prompt_that_another_session_has_hot_needs_no_copy_and_says_the_same) {
  const auto first = make_session();
  const auto logits = say(*first, 4 * kBlockSize + 2);
  const std::int32_t n_before = n_hot_blocks();
  const auto second = make_session();
  const auto shared_logits = say(*second, 4 * kBlockSize + 2);
  EXPECT_EQ(n_hot_blocks(), n_before + 1) << "the open block";
  EXPECT_EQ(last_.acts.shared.size(), 4U);
  EXPECT_EQ(last_.acts.shared, last_.acts.adopted);
  EXPECT_EQ(last_.from[Origin::kShared], 4 * kBlockSize);
  EXPECT_EQ(last_.n_adopted, 4 * kBlockSize);
  EXPECT_EQ(last_.from[Origin::kRecalledExact], 0);
  EXPECT_EQ(last_.from[Origin::kNew], 2);
  EXPECT_EQ(second->stats().n_shared_blocks, 4);
  EXPECT_EQ(second->n_hot_blocks(), 5) << "of its own budget it holds what it sees";
  EXPECT_EQ(n_own_blocks(*second), 1);
  ASSERT_TRUE(logits && shared_logits);
  EXPECT_EQ(std::memcmp(logits->data(), shared_logits->data(), logits->size() * sizeof(float)), 0);
  first->check_invariants();
  second->check_invariants();
}

// All variants are the same up to three tokens into block 3.
constexpr std::int32_t kCommonInBlock = 3;

TEST_P(Sharing, of_a_block_that_begins_as_another_does_only_the_rest_is_computed) {
  const auto first = make_session();
  say(*first, 4 * kBlockSize);
  const auto second = make_session();
  const auto alone = make_session({.adopts = false});
  const std::int32_t n = 3 * kBlockSize + 7;  // of the fourth block's eight, six can be taken: the last is asked for
  const auto copied = say(*second, n);
  const bool has_rows = GetParam().kv_type != RowType::kKivi4;
  EXPECT_EQ(last_.from[Origin::kNew], has_rows ? 1 : 7);
  EXPECT_EQ(last_.n_adopted, has_rows ? n - 1 : 3 * kBlockSize);
  EXPECT_EQ(last_.from[Origin::kRecalledExact], has_rows ? 6 : 0) << "whole blocks are shared, this one is copied";
  EXPECT_EQ(n_own_blocks(*second), 1);
  const auto computed = say(*alone, n);
  ASSERT_TRUE(copied && computed);
  EXPECT_EQ(std::memcmp(copied->data(), computed->data(), copied->size() * sizeof(float)), 0);
  second->check_invariants();
}

TEST_P(Sharing, what_begins_alike_but_for_a_few_tokens_is_computed) {
  const auto first = make_session();
  say(*first, 4 * kBlockSize);
  const auto other = make_session();
  say(*other, 3 * kBlockSize + 7, 1);
  EXPECT_EQ(last_.from[Origin::kNew], 7) << kCommonInBlock << " tokens are not worth a copy";
}

TEST_P(Sharing, the_begin_of_a_block_comes_from_the_cold_store_too) {
  if (GetParam().kv_type == RowType::kKivi4) return;  // sealed rows are not to be had: the test above
  std::vector<BlockIndex> all;
  for (std::int32_t b = 0; b < 4; ++b) all.emplace_back(b);
  const auto first = make_session();
  say(*first, 4 * kBlockSize);
  ASSERT_TRUE(store_->flush().ok());
  first->evict(all);
  const auto second = make_session();
  const auto logits = say(*second, 3 * kBlockSize + 7);
  EXPECT_EQ(last_.from[Origin::kNew], 1);
  EXPECT_EQ(last_.from[Origin::kRecalledExact], 3 * kBlockSize + 6);
  const auto alone = make_session({.adopts = false});
  const auto computed = say(*alone, 3 * kBlockSize + 7);
  ASSERT_TRUE(logits && computed);
  EXPECT_EQ(std::memcmp(logits->data(), computed->data(), logits->size() * sizeof(float)), 0);
  // What is neither hot nor saved any more is computed.
  second->evict(all);
  for (const BlockIndex block : all) store_->drop(first->exact_name(block));
  const auto third = make_session();
  say(*third, 3 * kBlockSize + 7);
  EXPECT_EQ(last_.from[Origin::kNew], 3 * kBlockSize + 7);
}

TEST_P(Sharing, a_session_that_says_something_else_and_comes_back_computes_nothing_again) {
  const Position common(3 * kBlockSize + kCommonInBlock);
  const auto session = make_session();
  const auto first = say(*session, 5 * kBlockSize + 3);
  session->cut(common);
  say(*session, 2 * kBlockSize, 1);
  session->cut(common);
  const auto again = say(*session, 5 * kBlockSize + 3 - common.value());
  const std::int32_t n_computed = last_.from.n_computed();
  if (GetParam().kv_type == RowType::kKivi4) {
    EXPECT_EQ(n_computed, kBlockSize + 3) << "sealed rows are not to be had: the cut block is computed";
  } else {
    EXPECT_EQ(n_computed, 3) << "nobody has computed the open block to its end";
  }
  ASSERT_TRUE(first && again);
  EXPECT_EQ(std::memcmp(first->data(), again->data(), first->size() * sizeof(float)), 0);
  session->check_invariants();
}

TEST_P(Sharing, another_tenant_has_nothing_of_a_block_that_begins_alike) {
  const auto first = make_session({.tenant = "a"});
  say(*first, 4 * kBlockSize);
  const auto second = make_session({.tenant = "b"});
  say(*second, 3 * kBlockSize + 7);
  EXPECT_EQ(last_.n_adopted, 0);
}

TEST_P(Sharing, what_two_sessions_compute_side_by_side_is_in_the_pool_once) {
  const auto first = make_session();
  const auto second = make_session();
  Turn a(*first, Prompt(script(0, 3 * kBlockSize)));
  Turn b(*second, Prompt(script(0, 3 * kBlockSize)));
  while (a.n_pending() > 0) {
    ASSERT_TRUE(sessions_->step(a).has_value());
    ASSERT_TRUE(sessions_->step(b).has_value());
  }
  a.settle();
  EXPECT_EQ(n_hot_blocks(), 3);
  EXPECT_EQ(b.settle().from[Origin::kNew], 3 * kBlockSize) << "it did compute them";
  first->check_invariants();
  second->check_invariants();
}

TEST_P(Sharing, sessions_die_in_any_order_and_the_last_one_frees_the_frames) {
  for (const std::array<std::size_t, 3> order : {std::array<std::size_t, 3>{0, 1, 2}, {2, 1, 0}, {1, 0, 2}}) {
    std::array<std::unique_ptr<Session>, 3> all;
    for (auto& session : all) {
      session = make_session();
      say(*session, 3 * kBlockSize + 1);
    }
    const std::vector<std::byte> bytes = bytes_of(*all[order[2]], 1);
    all[order[0]].reset();
    all[order[1]].reset();
    EXPECT_EQ(bytes_of(*all[order[2]], 1), bytes);
    all[order[2]]->check_invariants();
    EXPECT_EQ(n_hot_blocks(), 4);
    all[order[2]].reset();
    EXPECT_EQ(pool().n_hot(), 0);
    EXPECT_EQ(sessions_->hot().size(), 0U);
  }
}

TEST_P(Sharing, what_one_evicts_stays_hot_with_the_other_and_comes_back_without_a_copy) {
  const auto first = make_session();
  say(*first, 3 * kBlockSize + 1);
  const auto second = make_session();
  say(*second, 3 * kBlockSize + 1);
  const std::vector<BlockIndex> blocks = {BlockIndex(0), BlockIndex(1)};
  const std::int32_t n_before = n_hot_blocks();
  const std::vector<std::byte> bytes = bytes_of(*first, 0);
  second->evict(blocks);
  EXPECT_EQ(n_hot_blocks(), n_before);
  EXPECT_EQ(bytes_of(*first, 0), bytes);
  recall(*second, blocks);
  EXPECT_EQ(last_.acts.shared, blocks);
  EXPECT_EQ(last_.acts.recalled, blocks);
  EXPECT_EQ(last_.from[Origin::kShared], 2 * kBlockSize);
  EXPECT_EQ(last_.from[Origin::kRecalledExact], 0);
  EXPECT_EQ(n_hot_blocks(), n_before);
  first->evict(blocks);
  second->evict(blocks);
  EXPECT_EQ(n_hot_blocks(), n_before - 2);
  recall(*second, blocks);
  EXPECT_TRUE(last_.acts.shared.empty());
  EXPECT_EQ(last_.from[Origin::kRecalledExact], 2 * kBlockSize);
  EXPECT_EQ(bytes_of(*second, 0), bytes);
}

TEST_P(Sharing, a_cut_into_a_block_that_others_use_goes_on_in_frames_of_its_own) {
  const auto first = make_session();
  say(*first, 3 * kBlockSize);
  const auto second = make_session();
  say(*second, 3 * kBlockSize + 1);
  const std::vector<std::byte> bytes = bytes_of(*first, 1);
  second->cut(Position(kBlockSize + 3));
  EXPECT_EQ(second->end(), Position(kBlockSize + 3));
  say(*second, kBlockSize - 3, 5);
  EXPECT_EQ(bytes_of(*first, 1), bytes);
  first->check_invariants();
  second->check_invariants();
}

TEST_P(Sharing, tenants_share_nothing) {
  const auto first = make_session({.tenant = "one"});
  say(*first, 3 * kBlockSize + 1);
  const auto second = make_session({.tenant = "two"});
  say(*second, 3 * kBlockSize + 1);
  EXPECT_TRUE(last_.acts.shared.empty());
  EXPECT_EQ(n_own_blocks(*second), 4);
  const auto alone = make_session({.adopts = false, .tenant = "one"});
  say(*alone, 3 * kBlockSize + 1);
  EXPECT_EQ(n_own_blocks(*alone), 4);
  EXPECT_EQ(n_own_blocks(*first), 4);
}

TEST_P(Sharing, a_moved_block_leaves_the_frames_that_others_use_as_they_are) {
  const auto first = make_session();
  say(*first, 4 * kBlockSize);
  const auto second = make_session({.recall_place = RecallPlace::kCompacted});
  say(*second, 4 * kBlockSize + 1);
  ASSERT_EQ(n_own_blocks(*second), 1);
  const std::vector<std::byte> bytes = bytes_of(*first, 3);
  second->evict(std::vector{BlockIndex(0), BlockIndex(1)});
  recall(*second, std::vector{BlockIndex(1)});
  EXPECT_EQ(second->anchor(BlockIndex(3)), Position(2 * kBlockSize)) << "they closed up";
  EXPECT_EQ(n_own_blocks(*second), 4);
  EXPECT_EQ(bytes_of(*first, 3), bytes);
  EXPECT_NE(bytes_of(*second, 3), bytes);
  first->check_invariants();
  second->check_invariants();
}

TEST_P(Sharing, where_the_pool_is_full_own_blocks_leave_first_and_shared_ones_that_cannot_be_copied_too) {
  open(7);
  const auto first = make_session({.recall_place = RecallPlace::kCompacted});
  say(*first, 4 * kBlockSize);
  const auto second = make_session({.recall_place = RecallPlace::kCompacted});
  say(*second, 5 * kBlockSize + 2);
  const auto stranger = make_session({.tenant = "another"});
  say(*stranger, kBlockSize);
  ASSERT_EQ(pool().n_free(), 0);
  say(*second, kBlockSize, 1);
  EXPECT_EQ(last_.acts.evicted, std::vector{BlockIndex(4)}) << "the oldest four give no frames back";
  EXPECT_EQ(last_.from[Origin::kNew], kBlockSize);
  const std::vector<std::byte> bytes = bytes_of(*first, 3);
  second->evict(std::vector{BlockIndex(0)});
  recall(*second, std::vector{BlockIndex(4)});
  second->check_invariants();
  EXPECT_EQ(bytes_of(*first, 3), bytes);
  first->check_invariants();
}

TEST_P(Sharing, frames_that_the_store_still_reads_outlive_the_session_that_gave_them_to_it) {
  for (int i = 0; i < 20; ++i) {
    auto first = make_session();
    say(*first, 3 * kBlockSize, i);
    const std::vector<std::byte> bytes = bytes_of(*first, 2);
    auto second = make_session();
    say(*second, 3 * kBlockSize + 1, i);
    const RecordKey key = {.model = sessions_->deps(nullptr).model,
                           .layout = sessions_->solo().memory().layout().fingerprint(),
                           .name = first->exact_name(BlockIndex(2))};
    first.reset();
    second->cut(Position(0));
    if (sessions_->solo().memory().host_bytes() == nullptr) continue;  // saved when evicted, by this thread
    const Result<RecordHandle> record = store_->get(key);
    ASSERT_TRUE(record.ok());
    std::vector<std::byte> saved;
    ASSERT_TRUE((*record)
                    ->copy_frames([&](std::int32_t, std::span<const std::byte> frame) {
                      saved.insert(saved.end(), frame.begin(), frame.end());
                    })
                    .ok());
    EXPECT_EQ(saved, bytes);
    store_->drop(key.name);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Sharing, all_forms(), form_name);

}  // namespace
}  // namespace ebb
