// One name means one content (law 2): what is computed twice, read in part, or half there.
#include <gmock/gmock.h>

#include "session/turn_test.h"
#include "store/fault_file_system.h"

namespace ebb {
namespace {

HeadSet heads_of(const Session& session, std::initializer_list<std::size_t> heads) {
  HeadSet set(session.shape().n_heads());
  for (const std::size_t head : heads) set.add(head);
  return set;
}

TEST_P(Turns, any_heads_of_any_blocks_leave_and_come_back_with_every_byte) {
  std::mt19937_64 random(29);
  say("quagga " + kFiller.substr(0, 80));
  for (int i = 0; i < 300; ++i) {
    HeadSet heads(session_->shape().n_heads());
    for (std::size_t head = 0; head < heads.n_heads(); ++head) {
      if (random() % 3 == 0) heads.add(head);
    }
    const std::vector<BlockIndex> blocks = {BlockIndex(static_cast<std::int32_t>(random() % 5)),
                                            BlockIndex(static_cast<std::int32_t>(random() % 5))};
    session_->evict(blocks, heads);
    session_->check_invariants();
    if (random() % 2 == 0) session_->recall(blocks);
    pool_->shuffle_free(random());
    session_->check_invariants();
    pool_->check_invariants();
    check_every_hot_byte();
  }
  EXPECT_EQ(session_->stats().n_missed_recalls, 0);
}

TEST_P(Turns, what_is_computed_behind_a_block_that_is_hot_in_some_heads_has_another_name) {
  const std::string text(2 * kBlockSize, 'a');
  const std::string more(kBlockSize, 'b');
  std::vector<Hash128> names;
  for (const std::vector<std::size_t>& missing : {std::vector<std::size_t>{}, {0}, {1}, {0, 1}, {0, 1, 2, 3, 4, 5}}) {
    session_ = make_session(kBudgetBlocks, {.adopts = false});
    say(text);
    HeadSet heads(session_->shape().n_heads());
    for (const std::size_t head : missing) heads.add(head);
    session_->evict(std::vector{BlockIndex(0)}, heads);
    const auto n_missing = static_cast<std::int32_t>(missing.size());
    EXPECT_EQ(session_->n_hot_tokens(), (12 - n_missing) * kBlockSize / 6) << "its share counts as hot";
    const TurnStats stats = say(more);
    EXPECT_EQ(stats.from[Origin::kHole], n_missing == 6 ? kBlockSize : 0);
    EXPECT_EQ(stats.from[Origin::kPartlyHot], n_missing > 0 && n_missing < 6 ? kBlockSize : 0);
    EXPECT_EQ(stats.from.total(), session_->end().value() - stats.n_generated) << "each token once";
    names.push_back(session_->exact_name(BlockIndex(2)));
    EXPECT_THAT(std::vector(names.begin(), names.end() - 1), ::testing::Not(::testing::Contains(names.back())));
  }
}

TEST_P(Turns, a_wave_brings_a_block_into_the_heads_that_want_it) {
  say("quagga " + kFiller.substr(0, 50));
  ASSERT_TRUE(session_->save().ok());
  const std::vector<BlockIndex> first = {BlockIndex(0)};
  session_->evict(first);
  const std::int32_t n_hot = session_->hot().n_hot_frames();
  const std::vector<HeadSet> wanted = {heads_of(*session_, {1, 4})};
  for (int again = 0; again < 2; ++again) {
    Wave wave = session_->begin_wave(first, ReadBy::kCaller, wanted);
    EXPECT_EQ(session_->n_frames(wave), again == 0 ? 2 : 0);
    Acts acts;
    session_->end_wave(std::move(wave), acts);
    EXPECT_EQ(acts.recalled.size(), again == 0 ? 1U : 0U);
    EXPECT_EQ(session_->hot().hot_heads(BlockIndex(0)), wanted.front());
    EXPECT_EQ(session_->hot().n_hot_frames(), n_hot + 2);
  }
  check_every_hot_byte();
  session_->recall(first);
  EXPECT_TRUE(session_->hot().is_hot(BlockIndex(0)));
  check_every_hot_byte();
}

// A fetch reads the heads that are missing when it begins.
TEST_P(Turns, heads_that_leave_while_others_are_read_come_back_too) {
  FaultFileSystem disk;
  store_ =
      *ColdStore::open({.ram_bytes = 0, .disk = DiskOptions{.folder = "cold", .max_bytes = 1 << 20}, .system = &disk});
  session_ = make_session(kBudgetBlocks);
  say("quagga " + kFiller.substr(0, 50));
  ASSERT_TRUE(session_->save().ok());
  ASSERT_TRUE(store_->flush().ok());
  const std::vector<BlockIndex> first = {BlockIndex(0)};
  session_->evict(first, heads_of(*session_, {1, 4}));
  Wave wave = session_->begin_wave(first);
  session_->evict(first, heads_of(*session_, {0, 5}));
  Acts acts;
  session_->end_wave(std::move(wave), acts);
  EXPECT_EQ(acts.recalled, first);
  EXPECT_TRUE(session_->hot().is_hot(BlockIndex(0)));
  check_every_hot_byte();
  session_.reset();
  store_.reset();
}

TEST_P(Turns, a_half_computed_block_is_neither_saved_nor_evicted) {
  say("quagga " + kFiller);
  ASSERT_TRUE(store_->flush().ok());
  const Hash128 name = session_->exact_name(BlockIndex(0));
  store_->drop(name);
  Turn turn(*session_, Prompt(*vocabulary_->tokenize("y")));
  turn.recall(std::vector{BlockIndex(0)});
  const SequenceInput half = *turn.begin_step(7);
  fill(half);
  turn.end_step();
  ASSERT_EQ(turn.n_recomputing(), 1);
  (void)session_->save();
  session_->save_for_image();
  ASSERT_TRUE(store_->flush().ok());
  EXPECT_FALSE(store_->find(name)) << "nine of its rows are anything";
  EXPECT_TRUE(session_->evict(std::vector{BlockIndex(0)}).evicted.empty());
  compute(turn, 64);
  turn.settle();
  EXPECT_EQ(session_->exact_name(BlockIndex(0)), name);
  check_every_hot_byte();
}

TEST_P(Turns, a_block_that_is_computed_again_with_other_last_bits_has_another_name) {
  say("quagga " + kFiller);
  ASSERT_TRUE(store_->flush().ok());
  const Hash128 name = session_->exact_name(BlockIndex(0));
  const Hash128 body = session_->hot().info(BlockIndex(0)).body;
  store_->drop(name);
  rounding_ = 1;
  say("y", "quagga", 1);
  ASSERT_TRUE(session_->hot().is_hot(BlockIndex(0)));
  EXPECT_NE(session_->exact_name(BlockIndex(0)), name);
  EXPECT_NE(session_->hot().info(BlockIndex(0)).body, body);
  const std::vector<std::byte> bytes = expected(BlockIndex(0), 1, 2);
  session_->evict(std::vector{BlockIndex(0)});
  session_->recall(std::vector{BlockIndex(0)});
  std::vector<std::byte> read(memory_->frame_bytes());
  memory_->read(session_->hot().frames(BlockIndex(0)).back(), read);
  if (GetParam() == KeyOrder::kByDim) {
    EXPECT_EQ(read, bytes);
  }
  EXPECT_EQ(session_->stats().n_missed_recalls, 1) << "the first time";
}

// Sessions that share nothing compute the same, and differ in the last bits. Each has its own back.
TEST_P(Turns, sessions_that_differ_in_the_last_bits_keep_what_each_computed) {
  for (const std::int32_t n_tokens : {10, kBlockSize, 2 * kBlockSize + 10}) {
    const std::string text(static_cast<std::size_t>(n_tokens), static_cast<char>('a' + n_tokens % 7));
    std::vector<std::unique_ptr<Session>> sessions;
    for (const std::uint64_t rounding : {1U, 2U}) {
      rounding_ = rounding;
      session_ = make_session(kBudgetBlocks, {.adopts = false});
      say(text);
      sessions.push_back(std::move(session_));
    }
    std::vector<SessionImage> images;
    for (const auto& session : sessions) {
      EXPECT_TRUE(session->save().ok());
      images.push_back(session->image());
    }
    sessions.clear();
    for (const std::size_t i : {0U, 1U, 0U}) {
      rounding_ = i + 1;
      session_ = *Session::restore(deps(), {.budget_tokens = kBudgetBlocks * kBlockSize, .adopts = false}, images[i]);
      EXPECT_EQ(std::ssize(session_->refill(0).recalled), session_->n_blocks()) << n_tokens << " tokens, " << i;
      check_every_hot_byte();
    }
    session_.reset();
  }
}

// Who comes to a block by its name takes it with what was visible when it was computed, to the last bit.
TEST_P(Turns, what_was_computed_behind_other_bits_is_not_adopted_behind_these) {
  const std::string text(2 * kBlockSize + 1, 'a');
  rounding_ = 1;
  say(text.substr(0, kBlockSize));
  ASSERT_TRUE(session_->save().ok());
  const std::unique_ptr<Session> first = std::move(session_);

  // Both blocks in one step.
  rounding_ = 2;
  session_ = make_session(12, {.adopts = false});
  Turn turn(*session_, Prompt(*vocabulary_->tokenize(text)));
  ASSERT_EQ(turn.begin_step(64)->tokens.size(), text.size());
  turn.abandon_step();
  compute(turn, 64);
  turn.settle();
  ASSERT_TRUE(session_->save().ok());
  const std::unique_ptr<Session> second = std::move(session_);
  EXPECT_NE(first->exact_name(BlockIndex(0)), second->exact_name(BlockIndex(0)));

  session_ = make_session(kBudgetBlocks);
  const TurnStats stats = say(text);
  EXPECT_EQ(stats.acts.adopted, std::vector{BlockIndex(0)}) << "the other's second block saw other bits than these";
}

}  // namespace
}  // namespace ebb
