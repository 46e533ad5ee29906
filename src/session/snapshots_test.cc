// What a sequence carries on beside K and V: taken at borders, rolled back with a cut, saved, and adopted with a prompt.
#include "session/snapshots_test.h"

#include <gmock/gmock.h>

#include "session/image.h"

namespace ebb {
namespace {

constexpr std::int32_t kTail = 3;

TEST_P(SequenceStates, a_cut_anywhere_goes_back_to_the_border_before_it_and_what_lies_between_is_computed_again) {
  const std::vector<Token> said = text(4 * kBlockSize + kTail);
  const std::vector<Token> more = text(2 * kBlockSize, 2);
  for (const std::int32_t n_rows : {1, 7, kBlockSize, kRows}) {
    for (std::int32_t end = 0; end <= 4 * kBlockSize + kTail; end += n_rows == 7 ? 1 : 5) {
      begin({.budget_tokens = kBudgetBlocks * kBlockSize, .adopts = false});
      say(said, n_rows);
      const bool is_whole = end == 4 * kBlockSize + kTail;
      session_->cut(Position(end));
      std::vector<Token> now(said.begin(), said.begin() + end);
      expect_waits_behind(Position(is_whole ? end : end / kBlockSize * kBlockSize), now);
      say(more, n_rows);
      now.insert(now.end(), more.begin(), more.end());
      expect_waits_behind(Position(end + 2 * kBlockSize), now);
    }
  }
  EXPECT_EQ(session_->stats().n_missed_recalls, 0);
}

TEST_P(SequenceStates, a_snapshot_is_a_record_of_its_own_kind_for_each_border_that_a_step_crosses) {
  const std::vector<Token> said = text(4 * kBlockSize + kTail);
  say(said, 64);
  ASSERT_EQ(session_->image().borders.size(), 4U);
  for (std::size_t n = 1; n <= 4; ++n) {
    ASSERT_NE(record(n), nullptr) << n;
    const RecordHeader& header = record(n)->header();
    EXPECT_EQ(header.begin, Position(static_cast<std::int32_t>(n) * kBlockSize));
    EXPECT_EQ(header.n_tokens, 0);
    EXPECT_EQ(header.frame_bytes, state_->n_bytes());
    EXPECT_EQ(header.body, session_->image().borders[n - 1].body);
  }
}

TEST_P(SequenceStates, an_abandoned_step_leaves_the_state_as_it_was) {
  say(text(kBlockSize + kTail));
  Turn turn(*session_, Prompt(text(2 * kBlockSize, 2)));
  for (const std::size_t n_computed : {0U, 5U, 17U, 30U}) {
    step(turn, 30, n_computed);
    check_state();
  }
  finish(std::move(turn));
  EXPECT_EQ(session_->image().borders.size(), 3U);
}

TEST_P(SequenceStates, evicting_and_recalling_touch_nothing_of_it) {
  const std::vector<Token> said = text(10 * kBlockSize + kTail);
  say(said);
  ASSERT_FALSE(session_->hot().is_hot(BlockIndex(0))) << "longer than the budget";
  const std::vector<Snapshots::Border> before = session_->image().borders;
  const std::vector<BlockIndex> some = {BlockIndex(0), BlockIndex(8)};
  session_->evict(some);
  check_state();
  EXPECT_EQ(session_->recall(some).recalled, some);
  check_state();
  EXPECT_EQ(session_->image().borders, before);
}

// --- loss ---

TEST_P(SequenceStates, where_the_store_lost_a_snapshot_an_earlier_one_serves_and_without_any_the_beginning) {
  const std::vector<Token> said = text(5 * kBlockSize + kTail);
  const std::span<const Token> stays = std::span(said).first(3 * kBlockSize + 9);
  for (const std::int32_t n_lost : {0, 1, 2, 3}) {
    begin({.budget_tokens = kBudgetBlocks * kBlockSize, .adopts = false});
    say(said);
    for (std::int32_t n = 3; n > 3 - n_lost; --n) store_->drop(border(static_cast<std::size_t>(n)));
    session_->cut(Position(3 * kBlockSize + 9));
    expect_waits_behind(Position((3 - n_lost) * kBlockSize), stays);
    EXPECT_EQ(session_->stats().n_missed_recalls, n_lost);
    say({});
    expect_waits_behind(Position(3 * kBlockSize + 9), stays);
  }
}

TEST_P(SequenceStates, without_a_store_the_last_snapshots_are_held_and_no_more) {
  const std::vector<Token> said = text(5 * kBlockSize + kTail);
  store_.reset();
  const auto held = static_cast<std::int32_t>(kHeldSnapshots);
  for (const std::int32_t n : {5, 5 - held + 1, 5 - held}) {
    begin();
    say(said);
    session_->cut(Position(n * kBlockSize));
    expect_waits_behind(Position(n > 5 - held ? n * kBlockSize : 0), std::span(said).first(n * kBlockSize));
  }
}

TEST_P(SequenceStates, a_damaged_snapshot_is_refused_and_an_earlier_one_serves) {
  const std::vector<Token> said = text(5 * kBlockSize + kTail);
  say(said);
  damage(5);  // one that is held, too
  session_->cut(Position(5 * kBlockSize));
  expect_waits_behind(Position(4 * kBlockSize), std::span(said).first(5 * kBlockSize));
  damage(2);
  session_->cut(Position(2 * kBlockSize));
  expect_waits_behind(Position(kBlockSize), std::span(said).first(2 * kBlockSize));
  EXPECT_EQ(store_->stats().tier("ram").n_refused, 2);
}

TEST_P(SequenceStates, where_a_held_snapshot_is_damaged_a_sound_copy_in_the_store_serves) {
  const std::vector<Token> said = text(5 * kBlockSize + kTail);
  say(said);
  const RecordHandle sound = copy_of(record(5), record(5)->header());
  damage(5);
  store_->drop(border(5));
  ASSERT_TRUE(*store_->put(sound));
  session_->cut(Position(5 * kBlockSize));
  expect_waits_behind(Position(5 * kBlockSize), std::span(said).first(5 * kBlockSize));
}

TEST_P(SequenceStates, a_record_under_a_snapshots_name_that_is_none_of_this_place_is_refused) {
  const std::vector<Token> said = text(5 * kBlockSize);
  say(said);
  const RecordHandle right = record(2);
  store_->drop(right->key().name);
  RecordHeader elsewhere = right->header();
  elsewhere.begin = Position(kBlockSize);
  ASSERT_TRUE(*store_->put(copy_of(right, elsewhere)));
  session_->cut(Position(2 * kBlockSize));
  expect_waits_behind(Position(kBlockSize), std::span(said).first(2 * kBlockSize));
  EXPECT_FALSE(store_->find(right->key().name));
}

// A model computes rows of an old block from the state before it.
TEST_P(SequenceStates, a_lost_block_is_computed_again_from_the_state_before_it_and_the_sessions_own_waits) {
  say(text(4 * kBlockSize + kTail));
  const std::vector<BlockIndex> lost = {BlockIndex(0), BlockIndex(2)};
  session_->evict(lost);
  for (const BlockIndex block : lost) store_->drop(session_->exact_name(block));
  Turn turn(*session_, Prompt(text(4, 2)));
  turn.recall(lost);
  step(turn, 7);  // of block 0
  step(turn, 7, 3);
  check_state();
  const TurnStats stats = finish(std::move(turn), 7);
  EXPECT_EQ(stats.acts.recomputed, lost);
  EXPECT_EQ(session_->end(), Position(4 * kBlockSize + kTail + 4));
}

TEST_P(SequenceStates, a_lost_block_whose_state_is_lost_too_stays_a_hole) {
  say(text(4 * kBlockSize + kTail));
  session_->evict(std::vector{BlockIndex(1)});
  store_->drop(session_->exact_name(BlockIndex(1)));
  store_->drop(border(1));
  Turn turn(*session_, Prompt(text(4, 2)));
  turn.recall(std::vector{BlockIndex(1)});
  const TurnStats stats = finish(std::move(turn));
  EXPECT_TRUE(stats.acts.recomputed.empty());
  EXPECT_EQ(stats.from[Origin::kHole], kBlockSize);
}

// --- names ---

TEST_P(SequenceStates, a_name_says_every_token_before_the_border_also_those_that_no_block_behind_them_saw) {
  const std::vector<Token> same = text(kBlockSize + kTail, 9);
  std::vector<Hash128> blocks;
  std::vector<Hash128> borders;
  for (const std::uint64_t seed : {1U, 2U}) {
    begin();
    say(text(kBlockSize, seed));
    session_->evict(std::vector{BlockIndex(0)});
    say(same);
    blocks.push_back(session_->exact_name(BlockIndex(1)));
    borders.push_back(border(2));
    session_->cut(Position(2 * kBlockSize));
    EXPECT_EQ(session_->end(), Position(2 * kBlockSize));
    check_state();
  }
  EXPECT_EQ(blocks[0], blocks[1]) << "behind a hole";
  EXPECT_NE(borders[0], borders[1]);
}

TEST_P(SequenceStates, one_that_differs_in_the_last_bits_gets_a_name_of_its_own_and_so_does_what_follows) {
  const std::vector<Token> said = text(4 * kBlockSize);
  std::vector<std::vector<Snapshots::Border>> borders;
  for (const std::uint64_t rounding : {0U, 1U}) {
    begin({.budget_tokens = kBudgetBlocks * kBlockSize, .adopts = false});
    state_->set_rounding(rounding);
    say(said);
    borders.push_back(session_->image().borders);
    session_->cut(Position(kBlockSize));
    EXPECT_EQ(session_->end(), Position(kBlockSize));
    EXPECT_EQ(state_->value().rounding, rounding);
    check_state();
  }
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NE(borders[0][i].name, borders[1][i].name) << i;
}

TEST_P(SequenceStates, what_another_saved_under_a_name_that_was_lost_is_not_taken_for_its_own) {
  const std::vector<Token> said = text(5 * kBlockSize);
  say(said);
  const std::vector<Snapshots::Border> borders = session_->image().borders;
  for (const Snapshots::Border& border : borders) store_->drop(border.name);
  const std::unique_ptr<ToyState> own = std::move(state_);
  const std::unique_ptr<Session> first = std::move(session_);
  begin({.budget_tokens = kBudgetBlocks * kBlockSize, .adopts = false});
  state_->set_rounding(1);
  say(said);
  ASSERT_EQ(border(2), borders[1].name);
  first->cut(Position(2 * kBlockSize));
  EXPECT_EQ(first->end(), Position(0));
  EXPECT_EQ(own->value(), ToyState::Value());
  EXPECT_TRUE(store_->find(border(2))) << "it stays for whom it serves";
}

// --- adopting ---

TEST_P(SequenceStates, a_prompts_blocks_are_adopted_as_far_as_its_state_is_to_be_had) {
  const std::vector<Token> said = text(5 * kBlockSize + kTail);
  for (const bool is_hot : {true, false}) {
    for (const std::int32_t n_lost : {0, 1, 3, 5}) {
      session_.reset();
      store_ = *ColdStore::open({.ram_bytes = 1 << 20});
      begin();
      say(said);
      ASSERT_TRUE(session_->save().ok());
      ASSERT_TRUE(store_->flush().ok());
      for (std::int32_t n = 5; n > 5 - n_lost; --n) store_->drop(border(static_cast<std::size_t>(n)));
      const std::unique_ptr<Session> first = is_hot ? std::move(session_) : nullptr;
      const std::unique_ptr<ToyState> firsts = std::move(state_);
      begin();
      const TurnStats stats = say(said);
      EXPECT_EQ(stats.n_adopted, (5 - n_lost) * kBlockSize) << n_lost;
      EXPECT_EQ(stats.from[is_hot ? Origin::kShared : Origin::kRecalledExact], (5 - n_lost) * kBlockSize);
      EXPECT_EQ(stats.from[Origin::kNew], n_lost * kBlockSize + kTail);
      EXPECT_EQ(stats.from.total(), std::ssize(said));
      check_every_hot_byte();
    }
  }
}

TEST_P(SequenceStates, of_a_prompt_whose_last_snapshot_is_damaged_only_blocks_with_a_sound_one_are_adopted) {
  const std::vector<Token> said = text(5 * kBlockSize + kTail);
  say(said);
  ASSERT_TRUE(session_->save().ok());
  ASSERT_TRUE(store_->flush().ok());
  damage(5);
  store_->drop(border(4));
  begin();
  const TurnStats stats = say(said);
  EXPECT_EQ(stats.n_adopted, 3 * kBlockSize);
  EXPECT_EQ(std::ssize(stats.acts.adopted), 3);
  EXPECT_EQ(store_->stats().tier("ram").n_refused, 1);
}

TEST_P(SequenceStates, where_a_blocks_record_is_damaged_the_state_goes_along_with_those_before_it) {
  const std::vector<Token> said = text(5 * kBlockSize + kTail);
  say(said);
  ASSERT_TRUE(session_->save().ok());
  ASSERT_TRUE(store_->flush().ok());
  const RecordHandle sick = *store_->get(
      {.model = {1, 2}, .layout = memory_->layout().fingerprint(), .name = session_->exact_name(BlockIndex(3))});
  const_cast<std::byte&>(sick->bytes()[sick->header().frames_offset() + 5]) ^= std::byte{1};
  begin();
  EXPECT_THAT(say(said).acts.adopted,
              ::testing::ElementsAre(BlockIndex(0), BlockIndex(1), BlockIndex(2), BlockIndex(4)));
}

TEST_P(SequenceStates, rows_of_a_block_that_goes_on_alike_are_computed_since_none_carries_a_state_on) {
  const std::vector<Token> said = text(2 * kBlockSize);
  say(said);
  ASSERT_TRUE(session_->save().ok());
  begin();
  EXPECT_EQ(say({said.begin(), said.end() - 2}).n_adopted, kBlockSize);
}

// --- histories and images ---

TEST_P(SequenceStates, a_history_that_was_edited_goes_on_from_the_border_before_the_edit) {
  std::vector<Token> said = text(4 * kBlockSize + kTail);
  say(said);
  const std::vector<Token> other = text(kBlockSize, 5);
  std::ranges::copy(other, said.begin() + 2 * kBlockSize + 5);
  Turn turn = Turn::resume(*session_, Prompt(said));
  EXPECT_EQ(session_->end(), Position(2 * kBlockSize));
  const TurnStats stats = finish(std::move(turn));
  expect_waits_behind(Position(4 * kBlockSize + kTail), said);
  EXPECT_EQ(stats.from.total(), std::ssize(said));
}

TEST_P(SequenceStates, an_image_goes_on_at_the_last_border_and_says_what_is_to_be_computed_again) {
  const std::vector<Token> said = text(4 * kBlockSize + kTail);
  for (const std::int32_t n_lost : {0, 2, 4}) {
    begin();
    say(said);
    const std::vector<Token> left = text(2, 7);
    Turn(*session_, Prompt(left)).settle();
    session_->save_for_image();
    ASSERT_TRUE(session_->save().ok());
    const Result<SessionImage> image = decode_image(encode_image(session_->image()));
    ASSERT_TRUE(image.ok());
    EXPECT_EQ(image->borders, session_->image().borders);
    for (std::int32_t n = 4; n > 4 - n_lost; --n) store_->drop(border(static_cast<std::size_t>(n)));
    restore(*image);
    std::vector<Token> now = said;
    now.insert(now.end(), left.begin(), left.end());
    expect_waits_behind(Position((4 - n_lost) * kBlockSize), now);
    say(text(kBlockSize, 8));
    EXPECT_EQ(session_->end(), Position(5 * kBlockSize + kTail + 2));
  }
}

TEST_P(SequenceStates, an_image_from_a_session_without_a_state_is_computed_again_from_its_first_token) {
  session_ = make_session(kBudgetBlocks);
  const std::vector<Token> said = text(3 * kBlockSize + kTail);
  Turn turn(*session_, Prompt(said));
  compute(turn, kRows);
  turn.settle();
  const SessionImage image = session_->image();
  EXPECT_TRUE(image.borders.empty());
  restore(image);
  expect_waits_behind(Position(0), said);
}

TEST_P(SequenceStates, an_image_whose_snapshots_do_not_fit_its_tokens_is_refused) {
  say(text(3 * kBlockSize + kTail));
  SessionImage image = session_->image();
  image.borders.pop_back();
  EXPECT_EQ(Session::restore(state_deps(), options(), image).status().code(), Code::kDamaged);
}

TEST_P(SequenceStates, saving_gives_back_to_the_store_what_it_lost_of_the_last_snapshots) {
  say(text(3 * kBlockSize + kTail));
  const Hash128 name = border(3);
  store_->drop(name);
  ASSERT_TRUE(session_->save().ok());
  EXPECT_TRUE(store_->find(name));
}

INSTANTIATE_TEST_SUITE_P(Layouts, SequenceStates, ::testing::Values(KeyOrder::kByDim),
                         [](const auto&) { return "by_dim"; });

}  // namespace
}  // namespace ebb
