// What a session holds once it is cut to less than the model was trained for: positions are exact again, from the records
// that were saved before anything moved. And where the last block goes when a turn ends in the middle of what came back.
#include <cstring>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/random_model.h"
#include "tests/files.h"
#include "tests/solo_sessions.h"

namespace ebb::anew_test {
namespace {

constexpr std::int32_t kBlockSize = 8;
constexpr std::int32_t kBudgetBlocks = 8;
constexpr std::int32_t kTrained = 16 * kBlockSize;

class Anew : public ::testing::TestWithParam<RowType> {
 protected:
  void SetUp() override {
    const RandomModelSpec spec = {.n_layers = 2,
                                  .n_embd = 32,
                                  .n_heads = 2,
                                  .n_kv_heads = 1,
                                  .head_dim = 32,
                                  .n_ff = 32,
                                  .n_vocab = 272,
                                  .n_ctx_train = kTrained};
    ASSERT_TRUE(write_random_model(spec, file_.path()).ok());
    sessions_ = *SoloSessions::open(
        file_.path(), {.n_threads = 1, .kv_type = GetParam(), .block_size = kBlockSize, .n_ctx = 1024}, "recency");
    store_ = *ColdStore::open({.ram_bytes = std::size_t{8} << 20});
    session_ = open_session();
  }

  std::unique_ptr<Session> open_session(RecallPlace place = RecallPlace::kOriginal, ColdStore* store = nullptr) {
    return std::make_unique<Session>(
        sessions_->deps(store == nullptr ? store_.get() : store),
        SessionOptions{
            .budget_tokens = kBudgetBlocks * kBlockSize, .recent_tokens = kBlockSize, .recall_place = place});
  }

  static std::vector<Token> story(std::int32_t n_tokens, std::int32_t n_same = 1 << 20) {
    std::vector<Token> tokens;
    for (std::int32_t p = 0; p < n_tokens; ++p) tokens.emplace_back((p * 37 + p * p % 11 + (p < n_same ? 0 : 5)) % 272);
    return tokens;
  }

  std::vector<float> compute(Turn& turn) {
    std::optional<std::vector<float>> logits;
    while (turn.n_pending() > 0) {
      logits = sessions_->step(turn);
      EXPECT_TRUE(logits.has_value());
      if (!logits) break;
    }
    return logits.value_or(std::vector<float>());
  }

  void say(Session& session, std::vector<Token> tokens) {
    Turn turn(session, Prompt(std::move(tokens)));
    compute(turn);
    turn.settle();
    session.check_invariants();
  }

  // Bytes of full blocks while they are where they were computed.
  void note_bytes(const Session& session) {
    for (const BlockIndex block : session.hot().hot_blocks()) {
      if (!session.hot().is_full(block) || session.anchor(block) != session.hot().span(block).begin) continue;
      bytes_.try_emplace(block, SoloSessions::bytes_of(session, block));
    }
  }

  TemporaryFile file_{".gguf"};
  std::unique_ptr<SoloSessions> sessions_;
  std::unique_ptr<ColdStore> store_;
  std::unique_ptr<Session> session_;
  std::map<BlockIndex, std::vector<std::byte>> bytes_;
};

TEST_P(Anew, after_a_rebase_and_a_cut_well_below_the_trained_context_everything_comes_back_exactly) {
  const std::vector<Token> long_story = story(22 * kBlockSize);
  for (const Token token : long_story) {
    say(*session_, {token});
    note_bytes(*session_);
  }
  ASSERT_GT(session_->stats().n_rebases, 0);
  const std::int64_t n_moved = session_->stats().n_moved_blocks;

  // What is said now parts from it in the middle of block 5.
  constexpr std::int32_t kSame = 5 * kBlockSize + 3;
  const Prompt history(story(6 * kBlockSize, kSame));
  Turn turn = Turn::resume(*session_, history);
  EXPECT_EQ(session_->end(), Position(kSame));
  turn.refill(0);
  const std::vector<float> ours = compute(turn);
  const TurnStats& stats = turn.settle();
  session_->check_invariants();
  EXPECT_EQ(stats.from[Origin::kRecalledApproximate], 0);
  EXPECT_EQ(stats.from[Origin::kHole], 0);
  EXPECT_EQ(stats.from[Origin::kHotAlready] + stats.from[Origin::kRecalledExact] + stats.from[Origin::kRecomputed],
            kSame);
  EXPECT_EQ(session_->stats().n_moved_blocks, n_moved) << "nothing is turned for it";
  for (std::int32_t b = 0; b < 5; ++b) {
    EXPECT_EQ(session_->anchor(BlockIndex(b)), Position(b * kBlockSize));
    EXPECT_EQ(SoloSessions::bytes_of(*session_, BlockIndex(b)), bytes_.at(BlockIndex(b))) << b;
  }
  const auto fresh = open_session();
  Turn alone(*fresh, history);
  const std::vector<float> theirs = compute(alone);
  alone.settle();
  EXPECT_EQ(std::memcmp(ours.data(), theirs.data(), ours.size() * sizeof(float)), 0);
}

TEST_P(Anew, what_was_computed_beside_moved_blocks_is_computed_anew) {
  const std::vector<Token> long_story = story(22 * kBlockSize);
  for (const Token token : long_story) say(*session_, {token});
  ASSERT_GT(session_->stats().n_rebases, 0);
  const Position exact = session_->find_exact_end(session_->end());
  EXPECT_EQ(exact, Position(kTrained)) << "up to the first rebase";
  // More than was exact is said again, and does not fit: it goes on as it is.
  Turn going_on = Turn::resume(*session_, Prompt(story(20 * kBlockSize)));
  compute(going_on);
  going_on.settle();
  EXPECT_GT(session_->hot().epoch(), 0);
  // A history that fits, and ends with what was computed beside moved blocks elsewhere.
  const Prompt history(story(kTrained - 2 * kBlockSize));
  Turn turn = Turn::resume(*session_, history);
  turn.refill(0);
  const std::vector<float> ours = compute(turn);
  EXPECT_EQ(turn.settle().from[Origin::kRecalledApproximate], 0);
  session_->check_invariants();
  EXPECT_EQ(session_->hot().next_anchor(), session_->end());
}

TEST_P(Anew, a_cut_that_leaves_exact_blocks_moves_none_of_them_though_others_lie_at_the_tail) {
  session_ = open_session(RecallPlace::kTail);
  for (const Token token : story(6 * kBlockSize)) {
    say(*session_, {token});
    note_bytes(*session_);
  }
  session_->evict(std::vector{BlockIndex(1)});
  ASSERT_EQ(session_->recall(std::vector{BlockIndex(1)}).recalled.size(), 1U);
  ASSERT_NE(session_->anchor(BlockIndex(1)), Position(kBlockSize));
  constexpr std::int32_t kSame = 3 * kBlockSize + 3;
  Turn turn = Turn::resume(*session_, Prompt(story(5 * kBlockSize, kSame)));
  for (std::int32_t b = 0; b < session_->n_blocks(); ++b) {
    EXPECT_EQ(session_->anchor(BlockIndex(b)), Position(b * kBlockSize)) << b;
    EXPECT_EQ(session_->hot().info(BlockIndex(b)).variant, Hash128()) << b;
  }
  compute(turn);
  turn.settle();
  session_->check_invariants();
}

TEST_P(Anew, blocks_that_differ_in_the_last_bits_only_are_exact_and_grafts_are_not) {
  say(*session_, story(3 * kBlockSize));
  EXPECT_EQ(session_->find_exact_end(session_->end()), session_->end());
  if (GetParam() == RowType::kKivi4) return;  // sealed rows cannot be grafted
  const std::vector<Token> behind = story(40 * kBlockSize);
  std::vector<Token> before = story(2 * kBlockSize);
  std::vector<Token> edited = before;
  before.push_back(Token(3));
  edited.push_back(Token(4));
  edited.push_back(Token(5));
  for (std::vector<Token>* tokens : {&before, &edited}) {
    tokens->insert(tokens->end(), behind.begin() + 100, behind.begin() + 150);
  }
  session_ = open_session();
  say(*session_, before);
  Turn turn = Turn::resume(*session_, Prompt(edited), {.reuse = Reuse::kApproximate});
  compute(turn);
  EXPECT_GT(turn.settle().n_grafted, 0);
  EXPECT_EQ(session_->find_exact_end(session_->end()), session_->end()) << "nothing was moved, and none asks";
  session_->evict(std::vector{BlockIndex(0)});
  SessionOptions tail = session_->options();
  tail.recall_place = RecallPlace::kTail;
  ASSERT_TRUE(session_->save().ok());
  session_ = *Session::restore(sessions_->deps(store_.get()), tail, session_->image());
  session_->recall(std::vector{BlockIndex(0)});
  ASSERT_TRUE(session_->moved());
  EXPECT_EQ(session_->find_exact_end(session_->end()), Position(2 * kBlockSize)) << "the graft begins in this block";
}

// --- turns that end in the middle ---

TEST_P(Anew, a_turn_that_ends_right_after_blocks_came_to_the_tail_leaves_room_for_the_next_token) {
  session_ = open_session(RecallPlace::kTail);
  say(*session_, story(5 * kBlockSize + 3));
  session_->evict(std::vector{BlockIndex(1)});
  {
    Turn turn(*session_, Prompt());
    turn.recall(std::vector{BlockIndex(1)});
    while (turn.stats().acts.recalled.empty()) ASSERT_NE(turn.prepare(1), Turn::Ready::kNow);
    turn.settle();
  }
  session_->check_invariants();
  say(*session_, {Token(1), Token(2)});
}

TEST_P(Anew, a_recomputation_at_the_tail_that_is_given_up_leaves_room_for_the_next_token) {
  session_ = open_session(RecallPlace::kTail);
  while (session_->stats().n_rebases == 0) say(*session_, {Token(session_->end().value() % 200)});
  say(*session_, {Token(1), Token(2), Token(3)});
  ASSERT_FALSE(session_->hot().is_hot(BlockIndex(0)));
  store_->drop(session_->exact_name(BlockIndex(0)));
  {
    Turn turn(*session_, Prompt());
    turn.recall(std::vector{BlockIndex(0)});
    ASSERT_TRUE(turn.begin_step(3).ok());
    turn.abandon_step();
    turn.settle();
  }
  session_->check_invariants();
  say(*session_, {Token(1), Token(2)});
}

INSTANTIATE_TEST_SUITE_P(Types, Anew, ::testing::Values(RowType::kF32, RowType::kF16, RowType::kQ8_0, RowType::kKivi4),
                         [](const auto& instance) { return std::string(row_type_name(instance.param)); });

}  // namespace
}  // namespace ebb::anew_test
