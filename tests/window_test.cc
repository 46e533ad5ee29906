// Models with sliding windows: frames that no query looks at any more leave by themselves, and come back when a cut or a
// computation needs what a window shows there again. Logits are bitwise those of a session that keeps all of them.
#include <cstring>
#include <ostream>

#include <gtest/gtest.h>

#include "model/random_model.h"
#include "tests/files.h"
#include "tests/solo_sessions.h"

namespace ebb::window_test {
namespace {

constexpr std::int32_t kBlockSize = 8;
constexpr std::int32_t kWindow = 20;
constexpr std::int32_t kMostOfWindow = 4;  // blocks that a window of 20 may touch, with the one that is written to
constexpr std::int32_t kBlocks = 12;

struct Sliding {
  std::string name;
  std::int32_t n_layers = 2;
  std::int32_t period = 2;

  friend void PrintTo(const Sliding& value, std::ostream* out) { *out << value.name; }
};

class Windows : public ::testing::TestWithParam<Sliding> {
 protected:
  void SetUp() override {
    const RandomModelSpec spec = {.architecture = "gemma3",
                                  .n_layers = GetParam().n_layers,
                                  .n_embd = 32,
                                  .n_heads = 2,
                                  .n_kv_heads = 2,
                                  .head_dim = 32,
                                  .n_ff = 32,
                                  .n_vocab = 272,
                                  .tied = true,
                                  .sliding_window = kWindow,
                                  .sliding_period = GetParam().period};
    ASSERT_TRUE(write_random_model(spec, file_.path()).ok());
    sessions_ = *SoloSessions::open(file_.path(), {.n_threads = 1, .kv_type = RowType::kF16, .block_size = kBlockSize},
                                    "recency");
    store_ = *ColdStore::open({.ram_bytes = std::size_t{8} << 20});
    session_ = open_session();
    SessionDeps deps = sessions_->deps(nullptr);
    deps.shape.windows.clear();
    whole_ =
        std::make_unique<Session>(deps, SessionOptions{.budget_tokens = 2 * kBlocks * kBlockSize, .adopts = false});
  }

  std::unique_ptr<Session> open_session(std::int32_t n_blocks = 2 * kBlocks) {
    return std::make_unique<Session>(sessions_->sharing_deps(store_.get()),
                                     SessionOptions{.budget_tokens = n_blocks * kBlockSize});
  }

  static std::vector<Token> story(std::int32_t begin, std::int32_t n_tokens, std::int32_t variant = 0) {
    std::vector<Token> tokens;
    for (std::int32_t p = begin; p < begin + n_tokens; ++p) tokens.emplace_back((p * 37 + p * p % 11 + variant) % 272);
    return tokens;
  }

  std::vector<float> say(Session& session, std::int32_t n_tokens, std::int32_t variant = 0) {
    Turn turn(session, Prompt(story(session.end().value(), n_tokens, variant)));
    std::optional<std::vector<float>> logits;
    while (turn.n_pending() > 0) {
      logits = sessions_->step(turn);
      EXPECT_TRUE(logits.has_value());
      if (!logits) break;
      session.check_invariants();
    }
    last_ = turn.settle();
    return logits.value_or(std::vector<float>());
  }

  void expect_same_logits(std::int32_t n_tokens, std::int32_t variant = 0) {
    const std::vector<float> ours = say(*session_, n_tokens, variant);
    const std::vector<float> theirs = say(*whole_, n_tokens, variant);
    ASSERT_EQ(ours.size(), theirs.size());
    EXPECT_EQ(std::memcmp(ours.data(), theirs.data(), ours.size() * sizeof(float)), 0);
    for (std::int32_t b = 0; b < session_->end().value() / kBlockSize; ++b) {
      EXPECT_EQ(session_->exact_name(BlockIndex(b)), whole_->exact_name(BlockIndex(b))) << b;
    }
  }

  [[nodiscard]] std::int32_t n_sliding_layers() const {
    std::int32_t n = 0;
    for (const std::int32_t window : session_->shape().windows) n += window > 0 ? 1 : 0;
    return n;
  }

  [[nodiscard]] std::int32_t n_frames_at_most(std::int32_t n_blocks) const {
    const BlockShape& shape = session_->shape();
    return n_blocks * (shape.n_layers - n_sliding_layers()) * shape.n_kv_heads +
           std::min(n_blocks, kMostOfWindow) * n_sliding_layers() * shape.n_kv_heads;
  }

  TemporaryFile file_{".gguf"};
  std::unique_ptr<SoloSessions> sessions_;
  std::unique_ptr<ColdStore> store_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Session> whole_;
  TurnStats last_;
};

TEST_P(Windows, frames_of_layers_that_slide_are_bounded_by_the_window) {
  for (std::int32_t n_blocks = 1; n_blocks <= kBlocks; ++n_blocks) {
    expect_same_logits(kBlockSize);
    EXPECT_LE(session_->hot().n_hot_frames(), n_frames_at_most(n_blocks));
    EXPECT_EQ(session_->n_hot_tokens(),
              session_->shape().n_layers == n_sliding_layers() ? session_->n_hot_tokens() : n_blocks * kBlockSize)
        << "nothing is a hole";
  }
  EXPECT_EQ(last_.from[Origin::kHole], 0);
}

TEST_P(Windows, a_chunk_of_any_size_is_computed_with_what_its_first_row_sees) {
  const std::vector<Token> tokens = story(0, kBlocks * kBlockSize);
  Turn turn(*session_, Prompt(tokens));
  for (const std::int32_t n_rows : {5, 30, 3, 17, 40, 1}) {
    Turn* const one = &turn;
    ASSERT_TRUE(sessions_->step({&one, 1}, n_rows));
    session_->check_invariants();
    // Nothing that the next row looks at is missing.
    for (std::int32_t b = 0; b < session_->n_blocks(); ++b) {
      EXPECT_TRUE(session_->hot().is_hot(BlockIndex(b))) << b;
      const bool is_seen = (b + 1) * kBlockSize - 1 > session_->end().value() - kWindow;
      EXPECT_EQ(session_->hot().n_hot_frames(BlockIndex(b)) == session_->shape().frames_per_block(), is_seen) << b;
    }
  }
  turn.settle();
}

TEST_P(Windows, a_cut_brings_back_what_the_window_shows_again) {
  expect_same_logits(kBlocks * kBlockSize);
  for (const std::int32_t end : {9 * kBlockSize + 3, 6 * kBlockSize, 3 * kBlockSize + 1, 2}) {
    for (Session* session : {session_.get(), whole_.get()}) session->cut(Position(end));
    session_->check_invariants();
    for (std::int32_t b = 0; b < session_->n_blocks(); ++b) EXPECT_TRUE(session_->hot().is_hot(BlockIndex(b))) << b;
    EXPECT_LE(session_->hot().n_hot_frames(), n_frames_at_most(session_->n_blocks()));
    expect_same_logits(2 * kBlockSize + 1, end);
    EXPECT_EQ(last_.from[Origin::kHole], 0);
    EXPECT_EQ(last_.from[Origin::kHotAlready], end);
  }
}

TEST_P(Windows, blocks_behind_the_window_are_computed_again_as_they_were) {
  expect_same_logits(kBlocks * kBlockSize);
  std::vector<Hash128> names;
  std::vector<BlockIndex> lost;
  for (std::int32_t b = 0; b < 5; ++b) {
    lost.emplace_back(b);
    names.push_back(session_->exact_name(lost.back()));
  }
  for (std::int32_t b = 0; b < 5; ++b) {
    const std::vector<BlockIndex> one = {BlockIndex(b)};
    session_->evict(one);
    store_->drop(names[static_cast<std::size_t>(b)]);
    sessions_->recall(*session_, one);
    EXPECT_TRUE(session_->hot().is_hot(BlockIndex(b))) << b;
    EXPECT_EQ(session_->exact_name(BlockIndex(b)), names[static_cast<std::size_t>(b)]);
    session_->check_invariants();
    EXPECT_LE(session_->hot().n_hot_frames(), n_frames_at_most(kBlocks));
  }
  expect_same_logits(3);
}

TEST_P(Windows, what_another_session_computed_is_shared_where_anyone_looks) {
  say(*session_, kBlocks * kBlockSize);
  ASSERT_TRUE(session_->save().ok());
  const auto second = open_session();
  const std::vector<float> logits = say(*second, kBlocks * kBlockSize + 1);
  EXPECT_EQ(last_.from[Origin::kNew], 1);
  EXPECT_EQ(last_.n_adopted, kBlocks * kBlockSize);
  EXPECT_LE(second->hot().n_hot_frames(), n_frames_at_most(kBlocks + 1));
  const std::vector<float> expected = say(*whole_, kBlocks * kBlockSize + 1);
  EXPECT_EQ(std::memcmp(logits.data(), expected.data(), logits.size() * sizeof(float)), 0);
}

// Windows had moved on to where the prompt would have ended.
TEST_P(Windows, where_a_prompt_is_adopted_in_part_its_last_tokens_see_their_whole_window) {
  say(*session_, kBlocks * kBlockSize);
  ASSERT_TRUE(session_->save().ok());
  // A record never changes, except where memory is sick.
  const RecordHandle record = *store_->get({.model = sessions_->deps(nullptr).model,
                                            .layout = sessions_->solo().memory().layout().fingerprint(),
                                            .name = session_->exact_name(BlockIndex(10))});
  session_ = open_session();
  const_cast<std::byte&>(record->bytes().back()) ^= std::byte{1};
  Turn turn(*session_, Prompt(story(0, kBlocks * kBlockSize)));
  std::optional<std::vector<float>> logits;
  while (turn.n_pending() > 0) {
    logits = sessions_->step(turn);
    ASSERT_TRUE(logits.has_value());
    session_->check_invariants();
  }
  EXPECT_EQ(turn.settle().from[Origin::kHole], 0);
  EXPECT_GE(turn.stats().n_adopted, 10 * kBlockSize);
  EXPECT_GE(turn.stats().from[Origin::kNew], kBlockSize);
  const std::vector<float> expected = say(*whole_, kBlocks * kBlockSize);
  EXPECT_EQ(std::memcmp(logits->data(), expected.data(), expected.size() * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, Windows,
                         ::testing::Values(Sliding{"every_other_layer", 2, 2}, Sliding{"two_of_three", 3, 3},
                                           Sliding{"all_layers", 2, 0}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace ebb::window_test
