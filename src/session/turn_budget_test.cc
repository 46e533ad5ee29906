// Which budget of a session is in force and how its heads share it: lists of the user's, and prompts that have more.
#include <algorithm>

#include <gmock/gmock.h>

#include "session/turn_test.h"

namespace ebb {
namespace {

using ::testing::Each;
using ::testing::Le;

constexpr std::int32_t kPromptBlocks = 20;

class TurnBudgets : public Turns {
 protected:
  static constexpr std::int32_t kFrames = kLayers * kHeads;  // of a block

  Prompt text(std::int32_t n_tokens, char letter = 'a') {
    return Prompt(*vocabulary_->tokenize(std::string(static_cast<std::size_t>(n_tokens), letter)));
  }

  // --- lists ---

  void list(Scope scope, std::vector<double> weights, SessionOptions options = {.sink_tokens = 0, .recent_tokens = 0}) {
    options.budget_list = std::make_shared<BudgetList>(BudgetList{.scope = scope, .weights = std::move(weights)});
    options.adopts = false;
    session_ = make_session(kListedBlocks, options);
  }

  [[nodiscard]] std::vector<std::int32_t> frames_in_use() const {
    std::vector<std::int32_t> n_frames(kFrames, 0);
    for (const BlockIndex block : session_->hot().hot_blocks()) {
      session_->hot().hot_heads(block).for_each([&](std::size_t head) { ++n_frames[head]; });
    }
    return n_frames;
  }

  // Within one block of each head, and never more than the budget in all.
  void expect_in_use(const std::vector<double>& wanted, const std::string& when) {
    const std::vector<std::int32_t> now = frames_in_use();
    for (std::size_t head = 0; head < now.size(); ++head) {
      EXPECT_NEAR(now[head], wanted[head], 1.0) << when << ", head " << head;
    }
    EXPECT_LE(session_->hot().n_hot_frames(), session_->budget().n_frames) << when;
    EXPECT_GT(session_->hot().n_hot_frames(), session_->budget().n_frames - 2 * kFrames) << when;
  }

  void decode(Turn& turn, std::int32_t n_tokens) {
    for (std::int32_t i = 0; i < n_tokens; ++i) {
      turn.push(Token(5 + i % 7));
      compute(turn, 1);
    }
  }

  static constexpr std::int32_t kListedBlocks = 12;

  // --- prompts ---

  // The pool lends what is beyond n_blocks.
  void limit(std::int32_t n_blocks) { pool_->set_limit(n_blocks * kFrames); }

  std::unique_ptr<Session> with_prompt_budget(std::int32_t n_blocks, std::int32_t n_prompt_blocks,
                                              SessionOptions options = {}) {
    options.prompt_budget_tokens = n_prompt_blocks * kBlockSize;
    options.adopts = false;
    return make_session(n_blocks, options);
  }

  // A step, and what must hold before and after it.
  void step(Turn& turn, std::int32_t n_rows) {
    const Result<SequenceInput> input = turn.begin_step(n_rows);
    ASSERT_TRUE(input.ok()) << input.status().message();
    check_law();
    fill(*input);
    turn.end_step();
    check_law();
  }

  void check_law() const {
    session_->check_invariants();
    EXPECT_LE(session_->hot().n_hot_frames(), session_->budget().n_frames);
    EXPECT_LE(pool_->n_hot(), pool_->n_in_force());
  }

  [[nodiscard]] std::int32_t n_blocks_of(const BudgetUse& use) const { return use.budget.n_frames / kFrames; }
};

TEST_P(TurnBudgets, frames_in_use_are_what_a_list_gives_each_layer) {
  list(Scope::kLayer, {3, 1});
  Turn turn(*session_, text(40 * kBlockSize));
  compute(turn, 64);
  expect_in_use({18, 18, 18, 6, 6, 6}, "behind the prompt");
  for (std::int32_t i = 0; i < 6; ++i) {
    decode(turn, kBlockSize);
    expect_in_use({18, 18, 18, 6, 6, 6}, "in the reply");
  }
  turn.settle();
  check_every_hot_byte();
}

TEST_P(TurnBudgets, frames_in_use_are_what_a_list_gives_each_head) {
  list(Scope::kHead, {6, 2, 1, 1, 1, 1});
  Turn turn(*session_, text(60 * kBlockSize));
  compute(turn, 64);
  expect_in_use({36, 12, 6, 6, 6, 6}, "behind the prompt");
  decode(turn, 3 * kBlockSize);
  expect_in_use({36, 12, 6, 6, 6, 6}, "in the reply");
  turn.settle();
  check_every_hot_byte();
}

TEST_P(TurnBudgets, what_is_held_is_the_least_a_layer_has_and_the_rest_is_shared_around_it) {
  list(Scope::kLayer, {1, 0},
       {.sink_tokens = kBlockSize, .recent_tokens = kBlockSize, .pinned_tokens = 2 * kBlockSize});
  Turn turn(*session_, text(60 * kBlockSize));
  compute(turn, 64);
  decode(turn, 3 * kBlockSize);
  expect_in_use({20, 20, 20, 4, 4, 4}, "two pinned blocks, a recent one and the open one");
  turn.settle();
}

TEST_P(TurnBudgets, a_list_holds_again_behind_a_recall) {
  list(Scope::kLayer, {3, 1});
  say("quagga " + std::string(30 * kBlockSize, 'x'));
  expect_in_use({18, 18, 18, 6, 6, 6}, "before");
  Turn turn(*session_, text(kBlockSize, 'y'));
  turn.recall(std::vector{BlockIndex(0), BlockIndex(1), BlockIndex(2)});
  compute(turn, 64);
  EXPECT_EQ(turn.stats().acts.recalled.size(), 3U);
  for (std::int32_t b = 0; b < 3; ++b) EXPECT_TRUE(session_->hot().is_hot(BlockIndex(b))) << "kept for the turn";
  decode(turn, 3 * kBlockSize);
  expect_in_use({18, 18, 18, 6, 6, 6}, "in its reply");
  turn.settle();
  Turn next(*session_, text(4 * kBlockSize, 'z'));
  compute(next, 64);
  next.settle();
  expect_in_use({18, 18, 18, 6, 6, 6}, "in the next turn");
  check_every_hot_byte();
}

TEST_P(TurnBudgets, a_list_serves_any_budget) {
  list(Scope::kLayer, {3, 1});
  say(std::string(40 * kBlockSize, 'x'));
  EXPECT_EQ(set_budget(8), 8);
  expect_in_use({12, 12, 12, 4, 4, 4}, "of two thirds");
}

TEST_P(TurnBudgets, a_prompt_has_its_own_budget_and_what_is_over_leaves_before_the_reply) {
  limit(kBudgetBlocks);
  session_ = with_prompt_budget(kBudgetBlocks, kPromptBlocks);
  Turn turn(*session_, text(30 * kBlockSize));
  EXPECT_EQ(session_->budget_blocks(), kPromptBlocks);
  while (turn.n_pending() > 0) {
    EXPECT_EQ(session_->budget_blocks(), kPromptBlocks);
    step(turn, 48);
  }
  EXPECT_EQ(session_->budget_blocks(), kBudgetBlocks) << "before the first step of the reply";
  EXPECT_EQ(pool_->n_in_force(), kBudgetBlocks * kFrames);
  const std::int32_t n_seen = turn.stats().from[Origin::kNew];
  EXPECT_GT(n_seen, 19 * kBlockSize) << "counted as they were when the first token was sampled";
  for (std::int32_t i = 0; i < 20; ++i) {
    turn.push(Token(5 + i % 7));
    step(turn, 1);
  }
  const TurnStats& stats = turn.settle();
  EXPECT_EQ(n_blocks_of(stats.prompt), kPromptBlocks);
  EXPECT_EQ(stats.prompt.peak_frames, kPromptBlocks * kFrames);
  EXPECT_EQ(n_blocks_of(stats.reply), kBudgetBlocks);
  EXPECT_LE(stats.reply.peak_frames, kBudgetBlocks * kFrames);
  EXPECT_GT(stats.reply.peak_frames, (kBudgetBlocks - 2) * kFrames);
  EXPECT_EQ(stats.from[Origin::kNew], n_seen);
  // What left for the reply is saved as ever.
  const Acts acts = session_->recall(std::vector{BlockIndex(20), BlockIndex(21)});
  EXPECT_EQ(acts.recalled.size(), 2U);
  check_every_hot_byte();
}

TEST_P(TurnBudgets, every_prompt_has_it_again) {
  limit(kBudgetBlocks);
  session_ = with_prompt_budget(kBudgetBlocks, kPromptBlocks);
  for (int i = 0; i < 4; ++i) {
    Turn turn(*session_, text((9 + 5 * i) * kBlockSize, static_cast<char>('a' + i)));
    turn.refill(1);
    while (turn.n_pending() > 0) step(turn, 48);
    decode(turn, 5);
    const TurnStats& stats = turn.settle();
    EXPECT_EQ(n_blocks_of(stats.prompt), kPromptBlocks);
    EXPECT_EQ(n_blocks_of(stats.reply), kBudgetBlocks);
    EXPECT_GT(stats.prompt.peak_frames, stats.reply.peak_frames);
    check_every_hot_byte();
  }
}

TEST_P(TurnBudgets, a_prompt_that_is_cancelled_gives_back_what_it_had) {
  limit(kBudgetBlocks);
  session_ = with_prompt_budget(kBudgetBlocks, kPromptBlocks);
  Turn turn(*session_, text(30 * kBlockSize));
  while (session_->n_hot_blocks() < 15) step(turn, 48);
  ASSERT_TRUE(turn.begin_step(48).ok());
  turn.abandon_step();
  const TurnStats& stats = turn.settle();
  EXPECT_EQ(n_blocks_of(stats.prompt), kPromptBlocks);
  EXPECT_EQ(session_->budget_blocks(), kBudgetBlocks);
  EXPECT_EQ(pool_->n_in_force(), kBudgetBlocks * kFrames);
  check_law();
  check_every_hot_byte();
  say("what waits is said");
  check_law();
}

TEST_P(TurnBudgets, a_session_that_goes_in_the_midst_of_a_prompt_gives_back_what_it_had) {
  limit(kBudgetBlocks);
  session_ = with_prompt_budget(kBudgetBlocks, kPromptBlocks);
  {
    Turn turn(*session_, text(30 * kBlockSize));
    while (session_->n_hot_blocks() < 15) step(turn, 48);
  }
  session_.reset();
  EXPECT_EQ(pool_->n_in_force(), kBudgetBlocks * kFrames);
  EXPECT_EQ(pool_->n_hot(), 0);
}

TEST_P(TurnBudgets, a_pool_that_lends_nothing_has_room_for_a_prompt_within_its_limit) {
  session_ = with_prompt_budget(kBudgetBlocks, kPromptBlocks);
  Turn turn(*session_, text(30 * kBlockSize));
  while (turn.n_pending() > 0) step(turn, 48);
  EXPECT_EQ(turn.settle().prompt.peak_frames, kPromptBlocks * kFrames);
  EXPECT_LE(session_->hot().n_hot_frames(), kBudgetBlocks * kFrames);
}

TEST_P(TurnBudgets, a_prompt_that_fits_the_sessions_own_budget_lets_nothing_go) {
  limit(kBudgetBlocks);
  session_ = with_prompt_budget(kBudgetBlocks, kPromptBlocks);
  Turn turn(*session_, text(5 * kBlockSize));
  while (turn.n_pending() > 0) step(turn, 48);
  EXPECT_TRUE(turn.settle().acts.evicted.empty());
}

// Sessions that no one parks: what one had beside the others' frames while it read its prompt, it has not in its reply.
TEST_P(TurnBudgets, behind_a_prompt_all_sessions_of_a_pool_are_within_its_limit) {
  limit(12);
  std::unique_ptr<Session> idle = with_prompt_budget(8, 0);
  session_.swap(idle);
  say(std::string(10 * kBlockSize, 'i'));
  session_.swap(idle);
  ASSERT_GT(idle->n_hot_blocks(), 6);
  session_ = with_prompt_budget(10, kPromptBlocks);
  Turn turn(*session_, text(30 * kBlockSize));
  std::int32_t n_most = 0;
  while (turn.n_pending() > 0) {
    step(turn, 48);
    n_most = std::max(n_most, pool_->n_hot());
  }
  EXPECT_GT(n_most, 20 * kFrames) << "the prompt had its own beside the idle session's";
  EXPECT_EQ(pool_->n_in_force(), 12 * kFrames);
  EXPECT_LE(pool_->n_hot(), 12 * kFrames);
  decode(turn, 20);
  turn.settle();
  check_law();
}

// With what a scheduler frees for it (n_frames_from_pool), a session keeps all of its own behind the prompt.
TEST_P(TurnBudgets, what_others_must_give_before_a_prompt_ends_is_told_in_time) {
  limit(12);
  std::unique_ptr<Session> idle = with_prompt_budget(8, 0);
  session_.swap(idle);
  say(std::string(10 * kBlockSize, 'i'));
  session_.swap(idle);
  session_ = with_prompt_budget(10, kPromptBlocks);
  Turn turn(*session_, text(30 * kBlockSize));
  while (turn.n_pending() > 0) {
    while (pool_->n_free() < turn.n_frames_from_pool(48) && idle != nullptr) idle.reset();
    step(turn, 48);
  }
  EXPECT_EQ(idle, nullptr);
  EXPECT_EQ(session_->n_hot_blocks(), 10);
  turn.settle();
}

TEST_P(TurnBudgets, a_prompts_budget_may_change_under_way) {
  limit(kBudgetBlocks);
  session_ = with_prompt_budget(kBudgetBlocks, kPromptBlocks);
  Turn turn(*session_, text(40 * kBlockSize));
  for (int i = 0; turn.n_pending() > 0; ++i) {
    if (i == 8) session_->set_prompt_budget({.n_frames = 12 * kFrames + 1});
    EXPECT_EQ(session_->budget_blocks(), i < 8 ? kPromptBlocks : 12);
    step(turn, 48);
  }
  EXPECT_EQ(n_blocks_of(turn.settle().prompt), kPromptBlocks) << "the largest that was in force";
}

TEST_P(TurnBudgets, layers_share_the_budget_that_is_in_force_by_their_list) {
  limit(kListedBlocks);
  list(Scope::kLayer, {3, 1},
       {.prompt_budget_tokens = kPromptBlocks * kBlockSize, .sink_tokens = 0, .recent_tokens = 0});
  Turn turn(*session_, text(60 * kBlockSize));
  while (turn.n_pending() > 3 * kBlockSize) step(turn, 48);
  expect_in_use({30, 30, 30, 10, 10, 10}, "in the prompt");
  while (turn.n_pending() > 0) step(turn, 48);
  EXPECT_THAT(frames_in_use(), Each(Le(18)));
  decode(turn, 2 * kBlockSize);
  expect_in_use({18, 18, 18, 6, 6, 6}, "in the reply");
  turn.settle();
}

INSTANTIATE_TEST_SUITE_P(Layouts, TurnBudgets, ::testing::Values(KeyOrder::kByDim),
                         [](const auto&) { return "by_dim"; });

}  // namespace
}  // namespace ebb
