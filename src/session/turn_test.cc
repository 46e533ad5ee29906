// Turns without a model: what a turn evicts, recalls, cuts and computes again, byte for byte.
#include "session/turn_test.h"

#include <gmock/gmock.h>

namespace ebb {
namespace {

TEST_P(Turns, what_is_recalled_is_byte_for_byte_what_was_evicted) {
  say("quagga " + kFiller);
  ASSERT_FALSE(session_->hot().is_hot(BlockIndex(0)));
  pool_->shuffle_free(3);
  const TurnStats stats = say("y", "quagga", 1);
  ASSERT_EQ(stats.acts.recalled, std::vector<BlockIndex>{BlockIndex(0)});
  check_every_hot_byte();
}

TEST_P(Turns, any_sequence_of_turns_keeps_every_byte) {
  std::mt19937_64 random(17);
  const std::vector<std::string> words = {"quagga", "dodo", "auk", "moa", "tarpan", "thylacine"};
  std::int64_t n_recalled = 0;
  for (int turn = 0; turn < 60; ++turn) {
    const std::string& word = words[random() % words.size()];
    pool_->shuffle_free(random());
    n_recalled +=
        std::ssize(say(word + " " + std::string(random() % 90, 'z'), words[random() % words.size()], 2).acts.recalled);
    check_every_hot_byte();
    store_->check_invariants();
    pool_->check_invariants();
  }
  EXPECT_GT(n_recalled, 20);
}

TEST_P(Turns, a_hot_block_that_is_asked_for_stays_through_the_turn) {
  say("quagga " + kFiller);
  say("y", "quagga");
  ASSERT_TRUE(session_->hot().is_hot(BlockIndex(0)));
  const TurnStats again = say(std::string(40, 'z'), "quagga");
  EXPECT_THAT(again.acts.recalled, testing::Not(testing::Contains(BlockIndex(0))));
  EXPECT_THAT(again.acts.recalled, testing::Not(testing::Contains(testing::Gt(BlockIndex(1)))))
      << "what stands beside it may come";
  EXPECT_TRUE(session_->hot().is_hot(BlockIndex(0)));
}

TEST_P(Turns, what_a_prompt_let_go_comes_back_before_its_last_tokens_where_they_ask_for_it) {
  const auto prompt = [](char filler) { return "quagga " + std::string(300, filler) + " quagga"; };
  const TurnStats alone = say(prompt('w'));
  ASSERT_FALSE(session_->hot().is_hot(BlockIndex(0))) << "nothing asked for it";
  for (const std::int32_t n_rows : {7, 64}) {
    session_ = make_session(kBudgetBlocks);
    Turn turn(*session_, Prompt(*vocabulary_->tokenize(prompt(n_rows == 7 ? 'y' : 'z'))));
    turn.recall({.cues = find_cues("quagga"), .max_blocks = 2});
    std::vector<std::int32_t> n_left;
    while (turn.n_pending() > 0) {
      const Result<SequenceInput> input = turn.begin_step(n_rows);
      ASSERT_TRUE(input.ok()) << input.status().message();
      ASSERT_LE(session_->hot().n_hot_frames(), session_->budget().n_frames);
      if (session_->hot().is_hot(BlockIndex(0)) && input->first.value() > 160) n_left.push_back(turn.n_pending());
      fill(*input);
      turn.end_step();
    }
    const TurnStats stats = turn.settle();
    EXPECT_THAT(stats.acts.recalled, testing::Contains(BlockIndex(0)));
    EXPECT_LE(stats.acts.recalled.size(), 2U);
    EXPECT_TRUE(session_->hot().is_hot(BlockIndex(0)));
    EXPECT_EQ(stats.n_computed, alone.n_computed) << "each token once";
    ASSERT_FALSE(n_left.empty());
    EXPECT_LE(n_left.front(), 24 + kBlockSize) << "not before the end";
    EXPECT_GE(n_left.front(), 8) << "all of the question sees it";
    check_every_hot_byte();
  }
}

TEST_P(Turns, a_prompt_that_lets_nothing_go_is_not_cut_and_brings_nothing_back) {
  Turn turn(*session_, Prompt(*vocabulary_->tokenize("quagga " + std::string(60, 'x') + " quagga")));
  turn.recall({.cues = find_cues("quagga"), .max_blocks = 2});
  const Result<SequenceInput> input = turn.begin_step(24);
  ASSERT_TRUE(input.ok());
  EXPECT_EQ(input->tokens.size(), 16U) << "a share of the budget, as ever";
  turn.abandon_step();
  compute(turn, 64);
  EXPECT_TRUE(turn.settle().acts.recalled.empty());
}

TEST_P(Turns, what_was_asked_for_leaves_last_when_the_budget_shrinks) {
  say("quagga " + kFiller);
  Turn turn(*session_, Prompt(*vocabulary_->tokenize(kFiller)));
  turn.recall(std::vector{BlockIndex(0), BlockIndex(1), BlockIndex(2)});
  turn.prepare_all(64);
  ASSERT_EQ(turn.stats().acts.recalled.size(), 2U) << "the third was hot";
  EXPECT_EQ(set_budget(4), 4);
  for (std::int32_t b = 0; b < 3; ++b) EXPECT_TRUE(session_->hot().is_hot(BlockIndex(b))) << b;
  EXPECT_EQ(set_budget(2), 2) << "a turn that keeps what it recalled lets others starve";
  EXPECT_EQ(session_->n_hot_blocks(), 2);
  while (turn.n_pending() > 0) {
    const Result<SequenceInput> input = turn.begin_step(64);
    ASSERT_TRUE(input.ok()) << input.status().message();
    turn.end_step();
  }
  turn.settle();
}

TEST_P(Turns, a_block_that_is_half_computed_stays_when_the_budget_shrinks) {
  say("quagga " + kFiller);
  Turn turn(*session_, Prompt(*vocabulary_->tokenize("y")));
  store_->drop(session_->exact_name(BlockIndex(0)));
  turn.recall(std::vector{BlockIndex(0)});
  turn.prepare_all(7);
  ASSERT_EQ(turn.n_recomputing(), 1);
  ASSERT_EQ(turn.begin_step(7)->tokens.size(), 7U);
  turn.end_step();
  set_budget(2);
  EXPECT_TRUE(session_->hot().is_hot(BlockIndex(0)));
  EXPECT_EQ(turn.begin_step(64)->first, Position(7));
  turn.abandon_step();
  turn.settle();
  session_->check_invariants();
}

TEST_P(Turns, a_session_that_comes_back_to_what_it_said_takes_it_from_the_store) {
  for (const bool open_is_saved : {true, false}) {
    session_ = make_session(kBudgetBlocks);
    say(std::string(4 * kBlockSize, 'a'));
    ASSERT_TRUE(store_->flush().ok());
    const Hash128 open = session_->exact_name(BlockIndex(1));
    session_->cut(Position(kBlockSize + 10));
    if (!open_is_saved) store_->drop(open);
    Turn turn(*session_, Prompt(*vocabulary_->tokenize(std::string(2 * kBlockSize + 6, 'a') + "zz")));
    if (!open_is_saved) {
      const SequenceInput input = *turn.begin_step(64);
      ASSERT_EQ(input.tokens.size(), 6U) << "no further than whole blocks may be saved from";
      fill(input);
      turn.end_step();
    }
    const SequenceInput input = *turn.begin_step(64);
    ASSERT_EQ(input.tokens.size(), 2U);
    fill(input);
    turn.end_step();
    EXPECT_EQ(turn.settle().n_adopted, 2 * kBlockSize + (open_is_saved ? 6 : 0));
    check_every_hot_byte();
  }
}

TEST_P(Turns, an_abandoned_step_leaves_no_trace) {
  say("quagga");
  const std::int32_t n_hot = pool_->n_hot();
  const Position end = session_->end();
  Turn turn(*session_, Prompt(*vocabulary_->tokenize(std::string(30, 'z'))));
  ASSERT_TRUE(turn.begin_step(30).ok());
  turn.abandon_step();
  EXPECT_EQ(pool_->n_hot(), n_hot);
  EXPECT_EQ(session_->end(), end);
  session_->check_invariants();
  EXPECT_EQ(turn.n_pending(), 30);
}

TEST_P(Turns, pinned_blocks_stay_and_a_late_pin_holds_what_is_hot) {
  say("quagga " + kFiller.substr(0, 20));
  EXPECT_EQ(session_->set_pinned("turn1", true), 1);
  say(kFiller);
  EXPECT_TRUE(session_->hot().is_hot(BlockIndex(0)));
  EXPECT_EQ(session_->set_pinned("turn1", false), 1);
  say(kFiller);
  EXPECT_FALSE(session_->hot().is_hot(BlockIndex(0)));
}

TEST_P(Turns, a_prompt_that_pins_hold_no_room_for_is_refused_with_the_pins_counted) {
  say("quagga " + kFiller.substr(0, 60));
  for (std::int32_t b = 0; b < session_->n_blocks(); ++b) session_->set_pinned(BlockIndex(b), true);
  Turn turn(*session_, Prompt(*vocabulary_->tokenize(kFiller)));
  Status status;
  while (status.ok() && turn.n_pending() > 0) {
    const Result<SequenceInput> input = turn.begin_step(7);
    status = input.status();
    if (!input.ok()) break;
    turn.end_step();
    for (std::int32_t b = 0; b < session_->n_blocks(); ++b) session_->set_pinned(BlockIndex(b), true);
  }
  turn.settle();
  EXPECT_EQ(status.code(), Code::kOutOfBudget);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("6 blocks of 6 frames pinned"));
  session_->check_invariants();
}

TEST_P(Turns, blocks_are_found_by_the_names_of_their_parts) {
  const std::vector<Token> file = *vocabulary_->tokenize(std::string(40, 'f'));
  const std::vector<Token> rest = *vocabulary_->tokenize(std::string(30, 'r'));
  const PromptPart read = {.source = Source::kTool, .name = "file:a.py"};
  Turn turn(*session_, Prompt::Builder().add(file, read).add(rest).build());
  while (turn.n_pending() > 0) {
    ASSERT_TRUE(turn.begin_step(64).ok());
    turn.end_step();
  }
  turn.settle();
  using ::testing::ElementsAre;
  EXPECT_THAT(session_->find_blocks("file:a.py"), ElementsAre(BlockIndex(0), BlockIndex(1), BlockIndex(2)));
  EXPECT_THAT(session_->find_blocks("file:a.py#1"), ElementsAre(BlockIndex(1)));
  EXPECT_THAT(session_->find_blocks("turn1#0"), ElementsAre(BlockIndex(2)));
  EXPECT_TRUE(session_->find_blocks("file:a.py#9").empty());
  EXPECT_TRUE(session_->find_blocks("file:a.py#x").empty());
  EXPECT_TRUE(session_->find_blocks("file:b.py").empty());
  std::string endless = "file:a.py";
  for (int i = 0; i < 200'000; ++i) endless += "#0";
  EXPECT_TRUE(session_->find_blocks(endless).empty());
  EXPECT_EQ(session_->block_name(BlockIndex(1)), "file:a.py#1");
  EXPECT_EQ(session_->block_name(BlockIndex(3)), "turn1#1");
}

TEST_P(Turns, what_is_named_can_be_evicted_and_recalled) {
  say(std::string(40, 'a'));
  EXPECT_EQ(session_->evict(session_->find_blocks("turn1")).evicted, (std::vector{BlockIndex(0), BlockIndex(1)}))
      << "the open block stays";
  EXPECT_EQ(session_->state(BlockIndex(0)), BlockState::kSaved);
  EXPECT_EQ(session_->recall(session_->find_blocks("turn1#1")).recalled, std::vector{BlockIndex(1)});
  EXPECT_EQ(session_->state(BlockIndex(1)), BlockState::kClean);
  check_every_hot_byte();
}

TEST_P(Turns, watermarks_make_room_for_several_steps_at_once) {
  session_ = make_session(kBudgetBlocks, {.watermarks = {.high = 0.9, .low = 0.5}, .recent_tokens = 0});
  say(std::string(5 * kBlockSize, 'a'));
  ASSERT_EQ(session_->n_hot_blocks(), 5);
  say("b");
  EXPECT_EQ(session_->n_hot_blocks(), 3) << "down to half of six, the new block included";
}

TEST_P(Turns, a_cut_forgets_what_lies_behind_and_the_session_goes_on) {
  say("quagga " + kFiller);
  ASSERT_FALSE(session_->hot().is_hot(BlockIndex(0)));
  EXPECT_EQ(session_->cut(Position(11)).recalled, std::vector{BlockIndex(0)}) << "it was not hot";
  session_->check_invariants();
  EXPECT_EQ(session_->end(), Position(11));
  EXPECT_TRUE(session_->hot().is_hot(BlockIndex(0))) << "recalled, because what comes next joins it";
  check_every_hot_byte();
  say("zebra");
  EXPECT_EQ(session_->n_blocks(), 1);
}

TEST_P(Turns, a_cut_into_a_cold_block_brings_it_back_only_where_the_budget_has_room) {
  say("quagga " + kFiller);
  session_->cut(Position(4 * kBlockSize));
  const BlockIndex last(3);
  session_->evict({&last, 1});
  for (const BlockIndex block : {BlockIndex(0), BlockIndex(1), BlockIndex(2)}) session_->set_pinned(block, true);
  session_->recall(std::vector{BlockIndex(0), BlockIndex(1), BlockIndex(2)});
  ASSERT_EQ(session_->n_hot_blocks(), 3);
  ASSERT_EQ(set_budget(3), 3);
  session_->cut(Position(3 * kBlockSize + 5));
  session_->check_invariants();
  EXPECT_FALSE(session_->hot().is_hot(last)) << "what else is hot is pinned";
  EXPECT_EQ(session_->end(), Position(3 * kBlockSize + 5));
  check_every_hot_byte();
}

TEST_P(Turns, what_a_cut_forgets_makes_room_for_the_block_that_it_splits) {
  say("quagga " + kFiller.substr(0, 50));
  const std::int32_t n_blocks = session_->n_blocks();
  const BlockIndex first(0);
  session_->evict({&first, 1});
  for (std::int32_t b = 1; b < n_blocks; ++b) session_->set_pinned(BlockIndex(b), true);
  set_budget(n_blocks - 1);
  const Acts acts = session_->cut(Position(kBlockSize / 2));
  EXPECT_EQ(acts.recalled, std::vector{first});
  EXPECT_TRUE(acts.evicted.empty());
  session_->check_invariants();
  check_every_hot_byte();
}

TEST_P(Turns, an_image_goes_on_with_the_bytes_of_the_cold_store) {
  say("quagga " + kFiller.substr(0, 50));
  ASSERT_TRUE(session_->save().ok());
  const SessionImage image = session_->image();
  const Hash128 name = session_->exact_name(BlockIndex(2));
  session_ = *Session::restore(deps(), {.budget_tokens = kBudgetBlocks * kBlockSize}, image);
  EXPECT_EQ(session_->n_hot_blocks(), 0);
  EXPECT_EQ(session_->exact_name(BlockIndex(2)), name);
  EXPECT_EQ(session_->refill(1).recalled.size(), static_cast<std::size_t>(session_->n_blocks()));
  check_every_hot_byte();
  say("zebra");
  check_every_hot_byte();
}

TEST_P(Turns, of_blocks_recalled_together_one_that_is_lost_is_computed_again_alone) {
  say("quagga " + kFiller.substr(0, 50));
  ASSERT_TRUE(store_->flush().ok());
  const std::vector<BlockIndex> blocks = {BlockIndex(0), BlockIndex(1), BlockIndex(2)};
  session_->evict(blocks);
  store_->drop(session_->exact_name(BlockIndex(1)));
  Turn turn(*session_, Prompt(*vocabulary_->tokenize("y")));
  turn.recall(blocks);
  turn.prepare_all(64);
  EXPECT_EQ(turn.stats().acts.recalled, (std::vector{BlockIndex(0), BlockIndex(2)}));
  EXPECT_EQ(turn.n_recomputing(), 1);
  EXPECT_EQ(session_->stats().n_missed_recalls, 1);
  check_every_hot_byte();
  session_->check_invariants();
}

TEST_P(Turns, of_blocks_recalled_together_a_damaged_one_leaves_again) {
  say("quagga " + kFiller.substr(0, 50));
  ASSERT_TRUE(store_->flush().ok());
  const std::vector<BlockIndex> blocks = {BlockIndex(0), BlockIndex(1), BlockIndex(2)};
  session_->evict(blocks);
  const auto record = *store_->get(
      {.model = {1, 2}, .layout = memory_->layout().fingerprint(), .name = session_->exact_name(BlockIndex(2))});
  // A record never changes, except where memory is sick.
  const_cast<std::byte&>(record->bytes()[record->header().frames_offset() + 5]) ^= std::byte{1};
  const Acts acts = session_->recall(blocks);
  EXPECT_EQ(acts.recalled, (std::vector{BlockIndex(0), BlockIndex(1)}));
  EXPECT_EQ(acts.lost, std::vector{BlockIndex(2)});
  EXPECT_FALSE(session_->hot().is_hot(BlockIndex(2)));
  EXPECT_EQ(store_->stats().tier("ram").n_refused, 1);
  EXPECT_FALSE(store_->find(session_->exact_name(BlockIndex(2))));
  check_every_hot_byte();
  session_->check_invariants();
}

TEST_P(Turns, blocks_that_the_cold_store_lost_are_saved_again_behind) {
  say("quagga " + kFiller.substr(0, 50));
  ASSERT_TRUE(store_->flush().ok());
  const Hash128 name = session_->exact_name(BlockIndex(1));
  store_->drop(name);
  session_->save_behind();
  ASSERT_TRUE(store_->flush().ok());
  EXPECT_EQ(store_->find(name).has_value(), GetParam() == KeyOrder::kByDim)
      << "frames of a device are not read by the store's thread";
  const std::vector<BlockIndex> blocks = {BlockIndex(0), BlockIndex(1)};
  session_->evict(blocks);
  EXPECT_EQ(session_->recall(blocks).recalled, blocks);
  check_every_hot_byte();
}

TEST_P(Turns, a_forked_session_wakes_its_open_block_before_new_tokens_join_it) {
  say("quagga 12");
  ASSERT_TRUE(session_->save().ok());
  const SessionImage image = session_->image();
  session_ = *Session::restore(deps(), {.budget_tokens = kBudgetBlocks * kBlockSize}, image);
  const TurnStats stats = say("zebra");
  EXPECT_EQ(stats.acts.recalled, std::vector{BlockIndex(0)});
  check_every_hot_byte();
}

TEST_P(Turns, an_image_that_does_not_fit_is_refused) {
  say("quagga " + kFiller);
  SessionImage image = session_->image();
  const SessionOptions options = {.budget_tokens = kBudgetBlocks * kBlockSize};
  image.blocks.pop_back();
  EXPECT_EQ(Session::restore(deps(), options, image).status().code(), Code::kDamaged);
  image = session_->image();
  image.tokens.front() = Token(1 << 29);
  EXPECT_EQ(Session::restore(deps(), options, image).status().code(), Code::kDamaged);
  image = session_->image();
  image.blocks.front().info.lineage = Lineage();
  EXPECT_EQ(Session::restore(deps(), options, image).status().code(), Code::kDamaged);
  image = session_->image();
  image.blocks.front().info.epoch = -1;
  EXPECT_EQ(Session::restore(deps(), options, image).status().code(), Code::kDamaged);
  image = session_->image();
  image.parts.push_back(image.parts.front());
  EXPECT_EQ(Session::restore(deps(), options, image).status().code(), Code::kDamaged);
}

TEST_P(Turns, lost_bytes_are_computed_again_in_the_turns_first_steps) {
  say("quagga " + kFiller);
  const Hash128 before = session_->exact_name(BlockIndex(0));
  store_->drop(before);
  const TurnStats stats = say("y", "quagga");
  EXPECT_EQ(stats.acts.recomputed, std::vector{BlockIndex(0)});
  EXPECT_EQ(stats.from[Origin::kRecomputed], kBlockSize);
  EXPECT_EQ(session_->stats().n_missed_recalls, 1);
  EXPECT_EQ(session_->exact_name(BlockIndex(0)), before) << "it saw nothing before it, then as now";
}

TEST_P(Turns, an_abandoned_recomputation_leaves_a_hole_and_the_old_name) {
  say("quagga " + kFiller);
  const Hash128 before = session_->exact_name(BlockIndex(1));
  store_->drop(before);
  Turn turn(*session_, Prompt(*vocabulary_->tokenize("y")));
  turn.recall(std::vector{BlockIndex(1)});
  ASSERT_TRUE(turn.begin_step(5).ok());
  turn.end_step();
  ASSERT_TRUE(turn.begin_step(5).ok());
  turn.abandon_step();
  turn.settle();
  EXPECT_FALSE(session_->hot().is_hot(BlockIndex(1)));
  EXPECT_EQ(session_->exact_name(BlockIndex(1)), before);
  EXPECT_EQ(session_->n_unfinished(), 1);
  session_->check_invariants();
}

TEST_P(Turns, an_exact_name_tells_what_was_visible_and_not_how_it_was_cut) {
  // The name of the last full block of a text that a new session computes in steps of n_rows.
  const auto name_of_last = [&](std::int32_t budget_blocks, std::int32_t n_rows) {
    session_ = make_session(budget_blocks, {.adopts = false});
    Turn turn(*session_, Prompt(*vocabulary_->tokenize(std::string(5 * kBlockSize + 3, 'a'))));
    while (turn.n_pending() > 0) {
      const Result<SequenceInput> input = turn.begin_step(n_rows);
      EXPECT_TRUE(input.ok());
      fill(*input);
      turn.end_step();
    }
    turn.settle();
    return session_->exact_name(BlockIndex(4));
  };
  const Hash128 in_small_steps = name_of_last(kBudgetBlocks, 1);
  EXPECT_EQ(name_of_last(kBudgetBlocks, 9), in_small_steps);
  EXPECT_NE(name_of_last(4, 1), in_small_steps)
      << "with four blocks hot at most, the first was a hole when the fifth was computed";
}

INSTANTIATE_TEST_SUITE_P(Layouts, Turns, ::testing::Values(KeyOrder::kByDim, KeyOrder::kByRow),
                         [](const auto& instance) { return instance.param == KeyOrder::kByDim ? "by_dim" : "by_row"; });

}  // namespace
}  // namespace ebb
