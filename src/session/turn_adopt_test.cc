// Turns that take what others computed: how far, in what order, and what leaves for it.
#include <gmock/gmock.h>

#include "session/turn_test.h"

namespace ebb {
namespace {

constexpr std::int32_t kLong = 20;  // blocks of a history that no budget here holds
constexpr std::int32_t kOneBehind = 1;

Prompt history(const Vocabulary& vocabulary, std::int32_t n_blocks, std::int32_t block_size) {
  return Prompt(*vocabulary.tokenize(std::string(static_cast<std::size_t>(n_blocks * block_size + kOneBehind), 'a')));
}

TEST_P(Turns, a_history_longer_than_the_budget_that_was_computed_under_the_same_is_adopted_to_its_end) {
  for (const double low : {1.0, 0.7}) {
    const SessionOptions options = {.watermarks = {.high = 1.0, .low = low}, .recent_tokens = 2 * kBlockSize};
    const Prompt said = history(*vocabulary_, kLong, kBlockSize);
    session_ = make_session(kBudgetBlocks, options);
    Turn first(*session_, said);
    compute(first, 64);
    ASSERT_GT(first.settle().acts.evicted.size(), 10U);
    ASSERT_TRUE(session_->save().ok());
    session_ = make_session(kBudgetBlocks, options);
    Turn again(*session_, said);
    compute(again, 64);
    const TurnStats& stats = again.settle();
    EXPECT_EQ(std::ssize(stats.acts.adopted), kLong) << "down to " << low;
    EXPECT_EQ(stats.from[Origin::kNew], kOneBehind);
    EXPECT_EQ(stats.from.total(), said.n_tokens());
    check_every_hot_byte();
  }
}

TEST_P(Turns, a_history_longer_than_the_budget_that_was_computed_with_all_visible_is_adopted_to_its_end) {
  const Prompt said = history(*vocabulary_, kLong, kBlockSize);
  session_ = make_session(kLong + 4);
  Turn first(*session_, said);
  compute(first, 64);
  EXPECT_TRUE(first.settle().acts.evicted.empty());
  const std::unique_ptr<Session> whole = std::move(session_);
  session_ = make_session(kBudgetBlocks);
  Turn again(*session_, said);
  compute(again, 64);
  const TurnStats& stats = again.settle();
  EXPECT_EQ(std::ssize(stats.acts.adopted), kLong);
  for (std::int32_t b = 0; b < kLong; ++b) {
    EXPECT_EQ(session_->exact_name(BlockIndex(b)), whole->exact_name(BlockIndex(b))) << b;
  }
  check_every_hot_byte();
}

// Law 7: what the model cannot see when the first token is sampled is a hole, wherever it came from.
TEST_P(Turns, of_a_prompt_longer_than_the_budget_what_is_not_visible_counts_as_holes) {
  const Prompt said = history(*vocabulary_, kLong, kBlockSize);
  for (const bool is_adopted : {false, true}) {
    session_ = make_session(kBudgetBlocks);
    Turn turn(*session_, said);
    compute(turn, 64);
    const TurnStats& stats = turn.settle();
    EXPECT_EQ(stats.acts.adopted.empty(), !is_adopted);
    std::int32_t n_visible = 0;
    for (const BlockIndex block : session_->hot().hot_blocks()) n_visible += session_->hot().span(block).n_tokens();
    EXPECT_LE(n_visible, kBudgetBlocks * kBlockSize);
    EXPECT_EQ(stats.from[Origin::kHole], said.n_tokens() - n_visible);
    EXPECT_EQ(stats.from.total(), said.n_tokens());
    ASSERT_TRUE(session_->save().ok());
  }
}

TEST_P(Turns, adopting_lets_nothing_go_that_computing_would_have_kept) {
  const std::vector<Token> system = *vocabulary_->tokenize(std::string(2 * kBlockSize, 's'));
  const std::vector<Token> rest = *vocabulary_->tokenize(std::string(kLong * kBlockSize + 1, 'a'));
  const Prompt said = Prompt::Builder().add(system, {.source = Source::kSystem, .name = "system"}).add(rest).build();
  session_ = make_session(kLong + 4);
  Turn first(*session_, said);
  compute(first, 64);
  first.settle();
  const std::unique_ptr<Session> whole = std::move(session_);
  session_ = make_session(kBudgetBlocks, {.recent_tokens = kBlockSize});
  Turn turn(*session_, said);
  compute(turn, 64);
  EXPECT_EQ(turn.settle().from[Origin::kNew], 1);
  for (const std::int32_t b : {0, 1}) EXPECT_TRUE(session_->hot().is_hot(BlockIndex(b))) << "the system's block " << b;
}

TEST_P(Turns, adopting_comes_in_waves_that_hold_a_bounded_number_of_records) {
  constexpr std::int32_t kBlocks = 45;
  store_ = *ColdStore::open({.ram_bytes = 2 << 20});
  const Prompt said = history(*vocabulary_, kBlocks, kBlockSize);
  session_ = make_session(kBlocks + 2);
  Turn first(*session_, said);
  compute(first, 64);
  first.settle();
  ASSERT_TRUE(session_->save().ok());
  session_ = make_session(kBlocks + 2);
  Turn turn(*session_, said);
  std::int32_t n_waves = 0;
  for (Turn::Ready ready = Turn::Ready::kMore; ready != Turn::Ready::kNow;) {
    const std::int32_t n_before = session_->n_blocks();
    ready = turn.prepare(64);
    const std::int32_t n_came = session_->n_blocks() - n_before;
    EXPECT_LE(n_came, static_cast<std::int32_t>(kWaveBlocks));
    n_waves += n_came > 0 ? 1 : 0;
  }
  EXPECT_EQ(n_waves, 2);
  EXPECT_EQ(turn.n_pending(), kOneBehind);
  compute(turn, 64);
  turn.settle();
  check_every_hot_byte();
}

TEST_P(Turns, where_a_record_of_a_prompt_is_lost_the_rest_is_computed_and_then_adopted_again) {
  const Prompt said = history(*vocabulary_, 5, kBlockSize);
  Turn first(*session_, said);
  compute(first, 64);
  first.settle();
  ASSERT_TRUE(session_->save().ok());
  const Hash128 lost = session_->exact_name(BlockIndex(2));
  session_ = make_session(kBudgetBlocks);
  store_->drop(lost);
  Turn turn(*session_, said);
  compute(turn, 64);
  const TurnStats& stats = turn.settle();
  EXPECT_THAT(stats.acts.adopted, ::testing::ElementsAre(BlockIndex(0), BlockIndex(1), BlockIndex(3), BlockIndex(4)));
  EXPECT_EQ(stats.from[Origin::kNew], kBlockSize + kOneBehind);
  check_every_hot_byte();
}

// --- what a budget says of itself ---

TEST_P(Turns, a_budget_that_cannot_be_as_low_as_asked_says_what_it_is) {
  session_ = make_session(kBudgetBlocks, {.recent_tokens = 0});
  say(std::string(5 * kBlockSize + 3, 'a'));
  session_->set_pinned(BlockIndex(0), true);
  EXPECT_EQ(set_budget(1), 2) << "a pinned block, and the one that is written to";
  EXPECT_EQ(session_->budget().n_blocks(session_->shape()), 2);
  EXPECT_EQ(session_->n_hot_blocks(), 2);
  session_->check_invariants();
  session_->set_pinned(BlockIndex(0), false);
  EXPECT_EQ(set_budget(1), 1);
  EXPECT_EQ(set_budget(4), 4);
  EXPECT_EQ(set_budget(kPoolBlocks + 1), kPoolBlocks) << "no more than the pool";
}

TEST_P(Turns, a_budget_counts_frames_and_not_blocks) {
  session_ = make_session(3, {.recent_tokens = 0});
  say(std::string(3 * kBlockSize, 'a'));
  HeadSet half(session_->shape().n_heads());
  for (std::size_t head = 0; head < half.n_heads(); head += 2) half.add(head);
  session_->evict(std::vector{BlockIndex(0), BlockIndex(1)}, half);
  const std::int32_t per_block = session_->shape().frames_per_block();
  EXPECT_EQ(session_->hot().n_hot_frames(), 2 * per_block);
  const TurnStats stats = say(std::string(kBlockSize, 'b'));
  EXPECT_TRUE(stats.acts.evicted.empty()) << "halves of two blocks left room for one";
  EXPECT_EQ(session_->n_hot_blocks(), 4);
  EXPECT_EQ(session_->hot().n_hot_frames(), 3 * per_block);
  EXPECT_EQ(session_->peak_hot_tokens(), 3 * kBlockSize);
}

}  // namespace
}  // namespace ebb
