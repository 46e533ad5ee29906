// What a step needs, as pure arithmetic: tables of what goes in and what must come out.
#include "session/plan.h"

#include <algorithm>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ebb {
namespace {

// Two layers of three heads, blocks of 16 tokens: 6 frames each.
constexpr std::int32_t kPerBlock = 6;
constexpr std::int32_t kBlockSize = 16;
constexpr std::int32_t kPlenty = 1 << 20;

BlockShape toy_shape() { return {.n_layers = 2, .n_kv_heads = 3, .block_size = kBlockSize}; }

FrameBudget blocks(std::int32_t n_blocks) { return {.n_frames = n_blocks * kPerBlock}; }

// --- plan_left_free ---

TEST(PlanLeftFree, a_session_that_fits_leaves_no_more_than_what_comes_next_takes) {
  EXPECT_EQ(plan_left_free(7, 1, kReplyBlocks, 8), 1);
  EXPECT_EQ(plan_left_free(8, 0, kReplyBlocks, 8), 0);
  EXPECT_EQ(plan_left_free(90, 3, kReplyBlocks, 93), 3);
}

TEST(PlanLeftFree, one_that_does_not_leaves_room_for_a_reply_and_at_most_an_eighth_of_the_budget) {
  EXPECT_EQ(plan_left_free(8, 1, kReplyBlocks, 8), 2);
  EXPECT_EQ(plan_left_free(100, 2, kReplyBlocks, 93), 2 + kReplyBlocks);
  EXPECT_EQ(plan_left_free(100, 0, kReplyBlocks, 4), 0);
}

// --- plan_wave ---

TEST(PlanWave, the_first_few_tell_how_many_come_in_time) {
  EXPECT_EQ(plan_wave({}, 0.0, 32), 32U) << "as long as it takes";
  EXPECT_EQ(plan_wave({.waited_ms = 1e6, .n_blocks = 8}, 0.0, 32), 32U);
  EXPECT_EQ(plan_wave({}, 100.0, 32), 8U);
  EXPECT_EQ(plan_wave({}, 100.0, 3), 3U);
  EXPECT_EQ(plan_wave({.waited_ms = 8.0, .n_blocks = 8}, 100.0, 32), 32U);
  EXPECT_EQ(plan_wave({.waited_ms = 80.0, .n_blocks = 8}, 100.0, 32), 2U);
  EXPECT_EQ(plan_wave({.waited_ms = 95.0, .n_blocks = 8}, 100.0, 32), 0U);
  EXPECT_EQ(plan_wave({.waited_ms = 900.0, .n_blocks = 8}, 100.0, 32), 0U);
  EXPECT_EQ(plan_wave({.waited_ms = 0.0, .n_blocks = 8}, 100.0, 32), 32U) << "they were another session's";
}

// --- plan_room ---

struct RoomCase {
  std::string name;
  RoomState room;
  std::int32_t n_new_frames = 0;
  RoomPlan expected;

  friend void PrintTo(const RoomCase& value, std::ostream* out) { *out << value.name; }
};

class PlanRoom : public ::testing::TestWithParam<RoomCase> {};

TEST_P(PlanRoom, is_what_the_table_says) {
  const RoomPlan plan = plan_room(GetParam().room, GetParam().n_new_frames);
  const RoomPlan& expected = GetParam().expected;
  EXPECT_EQ(plan.n_new_frames, GetParam().n_new_frames);
  EXPECT_EQ(plan.n_evict_needed, expected.n_evict_needed);
  EXPECT_EQ(plan.n_evict_wanted, expected.n_evict_wanted);
  EXPECT_EQ(plan.n_short, expected.n_short);
}

std::vector<RoomCase> room_cases() {
  const Watermarks marks = {.high = 0.9, .low = 0.5};
  return {
      {"what_fits_evicts_nothing", {.n_hot_frames = 12, .budget = blocks(10), .n_pool_free = 100}, 48, {}},
      {"one_frame_over_evicts_one",
       {.n_hot_frames = 13, .budget = blocks(10), .n_pool_free = 100},
       48,
       {.n_evict_needed = 1, .n_evict_wanted = 1}},
      {"frames_need_not_be_whole_blocks",
       {.n_hot_frames = 59, .budget = blocks(10), .n_pool_free = 3},
       5,
       {.n_evict_needed = 4, .n_evict_wanted = 4, .n_short = 2}},
      {"nothing_new_and_over_the_budget_evicts_what_is_over",
       {.n_hot_frames = 60, .budget = blocks(4), .n_pool_free = 0},
       0,
       {.n_evict_needed = 36, .n_evict_wanted = 36}},
      {"below_the_high_mark_nothing_leaves",
       {.n_hot_frames = 48, .budget = blocks(10), .watermarks = marks, .n_pool_free = 100},
       6,
       {}},
      {"above_the_high_mark_it_goes_down_to_the_low_one_though_nothing_must",
       {.n_hot_frames = 54, .budget = blocks(10), .watermarks = marks, .n_pool_free = 100},
       6,
       {.n_evict_needed = 0, .n_evict_wanted = 30}},
      {"what_must_leave_may_be_more_than_the_low_mark_wants",
       {.n_hot_frames = 60, .budget = blocks(10), .watermarks = {.high = 1.0, .low = 1.0}, .n_pool_free = 100},
       60,
       {.n_evict_needed = 60, .n_evict_wanted = 60}},
      {"a_pool_that_others_fill_is_short_of_what_it_has_not",
       {.n_hot_frames = 6, .budget = blocks(10), .n_pool_free = 4},
       12,
       {.n_short = 8}},
  };
}

INSTANTIATE_TEST_SUITE_P(Table, PlanRoom, ::testing::ValuesIn(room_cases()),
                         [](const auto& instance) { return instance.param.name; });

// --- plan_step ---

struct StepCase {
  std::string name;
  StepState step;
  std::int32_t n_tokens = 0;
  std::int32_t n_new_blocks = 0;

  friend void PrintTo(const StepCase& value, std::ostream* out) { *out << value.name; }
};

// Everything fits, and nothing bounds the step but what the case names.
StepState step_of(std::int32_t n_pending) {
  return {.n_pending = n_pending,
          .n_to_compute = n_pending,
          .max_rows = kPlenty,
          .n_anchors_left = kPlenty,
          .room = {.budget = blocks(1000), .n_pool_free = kPlenty}};
}

class PlanStep : public ::testing::TestWithParam<StepCase> {};

TEST_P(PlanStep, is_what_the_table_says) {
  const StepPlan plan = plan_step(GetParam().step, toy_shape());
  EXPECT_EQ(plan.n_tokens, GetParam().n_tokens);
  EXPECT_EQ(plan.room.n_new_frames, GetParam().n_new_blocks * kPerBlock);
}

std::vector<StepCase> step_cases() {
  std::vector<StepCase> cases;
  const auto add = [&](std::string name, StepState step, std::int32_t n_tokens, std::int32_t n_new_blocks) {
    cases.push_back({std::move(name), std::move(step), n_tokens, n_new_blocks});
  };
  StepState step = step_of(40);
  add("all_that_is_pending", step, 40, 3);
  step.n_to_compute = 10;
  add("no_further_than_what_is_to_be_computed", step, 10, 1);
  step = step_of(40);
  step.max_rows = 7;
  add("no_more_rows_than_the_batch_gives", step, 7, 1);
  step = step_of(40);
  step.n_anchors_left = 17;
  add("no_further_than_the_trained_context", step, 17, 2);
  step.n_anchors_left = 0;
  add("nothing_where_no_anchor_is_left", step, 0, 0);
  step = step_of(400);
  step.room.budget = blocks(10);
  add("a_quarter_of_the_budget_in_whole_blocks", step, 32, 2);
  step.room.budget = blocks(3);
  add("at_least_a_block_of_a_small_budget", step, 16, 1);
  step = step_of(10);
  step.n_rows_left = 10;
  add("rows_of_the_last_block_need_no_frames", step, 10, 0);
  step = step_of(11);
  step.n_rows_left = 10;
  add("one_more_begins_a_block", step, 11, 1);

  step = step_of(100);
  step.adopts = true;
  step.n_rows_left = 5;
  add("where_others_may_go_on_a_step_ends_with_the_block_under_way", step, 5, 0);
  step.n_rows_left = 0;
  step.max_rows = 50;
  add("and_then_with_a_whole_block", step, 48, 3);
  step.max_rows = 15;
  add("less_than_a_block_is_taken_as_it_is", step, 15, 1);
  step = step_of(100);
  step.adopts = true;
  add("the_end_of_the_prompt_is_taken_with_it", step, 100, 7);
  step = step_of(16 + 5);
  step.adopts = true;
  step.n_rows_left = 5;
  add("what_is_no_more_than_a_block_behind_is_not_cut", step, 21, 1);

  step = step_of(40);
  step.may_open = false;
  add("without_an_open_frame_only_whole_blocks", step, 32, 2);
  step.n_rows_left = 3;
  add("and_the_rest_of_the_one_under_way", step, 3 + 32, 2);
  step = step_of(10);
  step.may_open = false;
  add("or_nothing", step, 0, 0);
  step.n_rows_left = 12;
  add("the_block_under_way_has_its_open_frames", step, 10, 0);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Table, PlanStep, ::testing::ValuesIn(step_cases()),
                         [](const auto& instance) { return instance.param.name; });

TEST(Plan, of_any_step_keeps_every_bound) {
  std::mt19937_64 random(5);
  const auto draw = [&](std::int32_t n) { return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n)); };
  for (int i = 0; i < 20'000; ++i) {
    StepState step = {.n_pending = 1 + draw(300),
                      .max_rows = 1 + draw(100),
                      .n_rows_left = draw(kBlockSize),
                      .n_anchors_left = draw(200),
                      .may_open = draw(2) == 0,
                      .adopts = draw(2) == 0,
                      .room = {.n_hot_frames = draw(100), .budget = blocks(1 + draw(30)), .n_pool_free = draw(200)}};
    step.n_to_compute = 1 + draw(step.n_pending);
    const StepPlan plan = plan_step(step, toy_shape());
    ASSERT_GE(plan.n_tokens, 0);
    ASSERT_LE(plan.n_tokens, std::min({step.n_to_compute, step.max_rows, step.n_anchors_left}));
    if (step.may_open && step.n_anchors_left > 0) {
      ASSERT_GT(plan.n_tokens, 0) << "a step that could go on stands still";
    }
    const std::int32_t n_behind = std::max(0, plan.n_tokens - step.n_rows_left);
    ASSERT_EQ(plan.room.n_new_frames, (n_behind + kBlockSize - 1) / kBlockSize * kPerBlock);
    const bool ends_open = plan.n_tokens > step.n_rows_left ? n_behind % kBlockSize > 0 : false;
    if (!step.may_open) {
      ASSERT_FALSE(ends_open);
    }
    // Exactly what leaves for it makes it fit.
    ASSERT_EQ(plan.room.n_evict_needed,
              std::max(0, step.room.n_hot_frames + plan.room.n_new_frames - step.room.budget.n_frames) *
                  (plan.n_tokens > 0 ? 1 : 0));
    ASSERT_GE(plan.room.n_evict_wanted, plan.room.n_evict_needed);
  }
}

// --- plan_next_queries ---

struct NextCase {
  std::string name;
  StepState step;
  std::int32_t n_tokens = 0;
  std::int32_t expected = 0;

  friend void PrintTo(const NextCase& value, std::ostream* out) { *out << value.name; }
};

class PlanNextQueries : public ::testing::TestWithParam<NextCase> {};

TEST_P(PlanNextQueries, is_what_the_table_says) {
  EXPECT_EQ(plan_next_queries(GetParam().step, GetParam().n_tokens, toy_shape()), GetParam().expected);
}

std::vector<NextCase> next_cases() {
  std::vector<NextCase> cases;
  const auto add = [&](std::string name, const StepState& step, std::int32_t n_tokens, std::int32_t expected) {
    cases.push_back({std::move(name), step, n_tokens, expected});
  };
  StepState step = step_of(100);
  step.max_rows = 40;
  add("as_many_as_a_batch_gives", step, 40, 40);
  add("or_the_rest_of_the_prompt", step, 90, 10);
  add("none_behind_the_prompt", step, 100, 0);
  step.n_to_compute = 60;
  add("no_further_than_a_graft", step, 40, 20);
  add("none_where_a_graft_comes_next", step, 60, 0);
  step = step_of(100);
  step.n_anchors_left = 64;
  add("none_where_a_rebase_comes_next", step, 64, 0);

  step = step_of(100);
  step.max_rows = 32;
  step.room = {.n_hot_frames = 6 * kPerBlock, .budget = blocks(10), .n_pool_free = kPlenty};
  add("all_where_the_budget_has_room_for_both_steps", step, 32, 32);
  step.room.n_hot_frames += 1;
  add("none_where_something_leaves_for_the_second", step, 32, 0);
  step.n_rows_left = 8;
  step.max_rows = 20;
  add("rows_of_the_block_that_the_first_began_need_no_frames", step, 20, 20);
  step = step_of(100);
  step.max_rows = 32;
  step.room = {.budget = blocks(10), .watermarks = {.high = 0.3, .low = 0.1}, .n_pool_free = kPlenty};
  add("none_where_a_watermark_lets_something_go_before_it_must", step, 32, 0);
  step.room = {.budget = blocks(10), .n_pool_free = 4 * kPerBlock};
  add("all_where_the_pool_has_as_many_frames", step, 32, 32);
  step.room.n_pool_free -= 1;
  add("none_where_it_has_not", step, 32, 0);

  step = step_of(100);
  step.adopts = true;
  step.n_rows_left = 5;
  add("none_where_blocks_of_others_may_follow_the_one_that_ends", step, 5, 0);
  step.n_rows_left = 0;
  step.max_rows = 32;
  add("all_behind_blocks_that_nobody_had", step, 32, 32);
  step = step_of(40);
  step.may_open = false;
  add("without_an_open_frame_those_of_whole_blocks", step, 16, 16);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Table, PlanNextQueries, ::testing::ValuesIn(next_cases()),
                         [](const auto& instance) { return instance.param.name; });

TEST(Plan, the_queries_that_come_next_are_those_of_the_step_that_is_planned_then) {
  std::mt19937_64 random(6);
  const auto draw = [&](std::int32_t n) { return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n)); };
  for (int i = 0; i < 20'000; ++i) {
    StepState step = {.n_pending = 1 + draw(300),
                      .max_rows = 1 + draw(100),
                      .n_rows_left = draw(kBlockSize),
                      .n_anchors_left = 1 + draw(400),
                      .room = {.n_hot_frames = draw(100), .budget = blocks(1 + draw(60)), .n_pool_free = draw(400)}};
    step.n_to_compute = step.n_pending;
    const StepPlan now = plan_step(step, toy_shape());
    if (now.room.n_evict_wanted > 0 || now.room.n_short > 0) continue;
    const std::int32_t n_next = plan_next_queries(step, now.n_tokens, toy_shape());
    StepState then = step;
    then.n_pending = then.n_to_compute = step.n_pending - now.n_tokens;
    const std::int32_t n_behind = std::max(0, now.n_tokens - step.n_rows_left);
    then.n_rows_left =
        n_behind > 0 ? (kBlockSize - n_behind % kBlockSize) % kBlockSize : step.n_rows_left - now.n_tokens;
    then.n_anchors_left -= now.n_tokens;
    then.room.n_hot_frames += now.room.n_new_frames;
    then.room.n_pool_free -= now.room.n_new_frames;
    const StepPlan planned = plan_step(then, toy_shape());
    const bool fits = planned.room.n_evict_wanted == 0 && planned.room.n_short == 0;
    ASSERT_EQ(n_next, fits ? planned.n_tokens : 0);
  }
}

// --- plan_adoption ---

TEST(Plan, whole_blocks_come_as_far_as_there_is_room_or_as_many_as_a_step_brings) {
  struct Case {
    std::int32_t n_blocks, n_hot_blocks, n_budget_blocks, n_pool_free, expected;
  };
  for (const Case& c : {Case{32, 0, 100, kPlenty, 32}, Case{32, 0, 20, kPlenty, 20}, Case{32, 15, 20, kPlenty, 5},
                        Case{32, 16, 20, kPlenty, 5}, Case{32, 20, 20, kPlenty, 5}, Case{3, 20, 20, kPlenty, 3},
                        Case{32, 3, 3, kPlenty, 1}, Case{32, 0, 20, 7 * kPerBlock, 7}, Case{32, 0, 20, 0, 5},
                        Case{0, 0, 20, kPlenty, 0}}) {
    const RoomState room = {
        .n_hot_frames = c.n_hot_blocks * kPerBlock, .budget = blocks(c.n_budget_blocks), .n_pool_free = c.n_pool_free};
    EXPECT_EQ(plan_adoption(room, c.n_blocks, toy_shape()), c.expected)
        << c.n_blocks << " blocks, " << c.n_hot_blocks << " hot of " << c.n_budget_blocks;
  }
}

// --- fit_rows ---

TEST(Plan, rows_fit_as_far_as_whole_blocks_of_frames_are_free) {
  struct Case {
    std::int32_t n_tokens, n_rows_left, n_free_frames, expected;
  };
  for (const Case& c :
       {Case{40, 0, 18, 40}, Case{40, 0, 17, 32}, Case{40, 0, 11, 16}, Case{40, 0, 5, 0}, Case{40, 0, -6, 0},
        Case{40, 10, 0, 10}, Case{40, 10, 6, 26}, Case{8, 10, 0, 8}, Case{8, 0, kPlenty, 8}}) {
    EXPECT_EQ(fit_rows(c.n_tokens, c.n_rows_left, c.n_free_frames, toy_shape()), c.expected)
        << c.n_tokens << " tokens, " << c.n_rows_left << " rows, " << c.n_free_frames << " frames";
  }
}

}  // namespace
}  // namespace ebb
