// Turns without a model: frames are filled by hand, so that every byte that comes back can be told.
#include "session/turn.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

constexpr std::int32_t kBlockSize = 16;
constexpr std::int32_t kBudgetBlocks = 6;
constexpr std::int32_t kLayers = 2;
constexpr std::int32_t kHeads = 3;

class Turns : public ::testing::TestWithParam<KeyOrder> {
 protected:
  Turns() {
    backend_ = *Backend::open("cpu", 1);
    const FrameLayout layout = {.row_type = RowType::kF16,
                                .key_order = GetParam(),
                                .block_size = kBlockSize,
                                .head_dim_k = 16,
                                .head_dim_v = 24};
    vocabulary_ = *Vocabulary::load(vocabulary_file_.path());
    const std::int32_t n_frames = 3 * kBudgetBlocks * kLayers * kHeads;
    memory_ = *FrameMemory::open(*backend_, layout, n_frames);
    pool_ = std::make_unique<FramePool>(n_frames);
    session_ = make_session(kBudgetBlocks);
  }

  std::unique_ptr<Session> make_session(std::int32_t budget_blocks) {
    return std::make_unique<Session>(
        SessionParts{.pool = *pool_,
                     .memory = *memory_,
                     .vocabulary = *vocabulary_,
                     .policy = *policy_,
                     .tier = &tier_,
                     .shape = {.n_layers = kLayers, .n_kv_heads = kHeads, .block_size = kBlockSize},
                     .model = {1, 2},
                     .n_ctx_train = 1 << 20},
        SessionOptions{.budget_tokens = budget_blocks * kBlockSize});
  }

  // What a block's frame holds: numbers that no other block, layer or head has. Bytes that the layout leaves between its
  // planes read as zero on devices, so only whole rows are written: see fill().
  [[nodiscard]] std::vector<std::byte> expected(BlockIndex block, std::int32_t layer, std::int32_t head) const {
    std::mt19937_64 random(static_cast<std::uint64_t>((block.value() * kLayers + layer) * kHeads + head));
    std::vector<std::byte> bytes(memory_->frame_bytes());
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
  }

  // As the model would, for every block that the step touched.
  void fill() {
    const Residency& residency = session_->residency();
    for (std::int32_t b = 0; b < residency.n_blocks(); ++b) {
      if (!residency.is_hot(BlockIndex(b)) || filled_.contains(b)) continue;
      for (std::int32_t layer = 0; layer < kLayers; ++layer) {
        for (std::int32_t head = 0; head < kHeads; ++head) {
          memory_->write(residency.frame(BlockIndex(b), LayerIndex(layer), HeadIndex(head)),
                         expected(BlockIndex(b), layer, head));
        }
      }
      filled_.insert(b);
    }
  }

  void check_every_hot_byte() {
    const Residency& residency = session_->residency();
    std::vector<std::byte> written(memory_->frame_bytes());
    std::vector<std::byte> read(memory_->frame_bytes());
    for (std::int32_t b = 0; b < residency.n_blocks(); ++b) {
      if (!residency.is_hot(BlockIndex(b))) continue;
      for (std::int32_t layer = 0; layer < kLayers; ++layer) {
        for (std::int32_t head = 0; head < kHeads; ++head) {
          const FrameIndex frame = residency.frame(BlockIndex(b), LayerIndex(layer), HeadIndex(head));
          memory_->read(frame, read);
          // Through the frame and back, so that what the layout does not keep is not asked for.
          written = expected(BlockIndex(b), layer, head);
          if (GetParam() == KeyOrder::kByRow) clear_gaps(written);
          ASSERT_EQ(read, written) << "block " << b << " layer " << layer << " head " << head;
        }
      }
    }
  }

  void clear_gaps(std::vector<std::byte>& bytes) const {
    const FrameLayout& layout = memory_->layout();
    const auto clear = [&](std::size_t begin, std::size_t end) {
      std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.begin() + static_cast<std::ptrdiff_t>(end),
                std::byte{0});
    };
    const auto plane = [&](std::int32_t head_dim) {
      return static_cast<std::size_t>(head_dim * kBlockSize) * sizeof(std::uint16_t);
    };
    clear(layout.k_offset() + plane(layout.head_dim_k), layout.v_offset());
    clear(layout.v_offset() + plane(layout.head_dim_v), layout.frame_bytes());
  }

  // One turn: the prompt's tokens are computed, none is generated.
  TurnStats say(std::string_view text, std::string_view question = "", std::int32_t max_blocks = 2) {
    Turn turn(*session_, *vocabulary_->tokenize(text));
    if (!question.empty()) turn.recall(question, max_blocks);
    while (turn.n_pending() > 0) {
      const Result<SequenceInput> input = turn.begin_step(7);
      EXPECT_TRUE(input.ok()) << input.status().message();
      if (!input.ok()) break;
      fill();
      turn.end_step();
      session_->check_invariants();
      EXPECT_LE(session_->n_hot_blocks(), kBudgetBlocks);
    }
    return turn.settle();
  }

  ToyFile vocabulary_file_{toy_bpe().bytes()};
  std::unique_ptr<Vocabulary> vocabulary_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<FrameMemory> memory_;
  std::unique_ptr<FramePool> pool_;
  std::unique_ptr<Policy> policy_ = make_recency_policy();
  RamTier tier_{1 << 20};
  std::set<std::int32_t> filled_;
  std::unique_ptr<Session> session_;
};

const std::string kFiller(120, 'x');

TEST_P(Turns, what_is_recalled_is_byte_for_byte_what_was_evicted) {
  say("quagga " + kFiller);
  ASSERT_FALSE(session_->residency().is_hot(BlockIndex(0)));
  pool_->shuffle_free(3);
  const TurnStats stats = say("y", "quagga");
  ASSERT_EQ(stats.recalled, std::vector<BlockIndex>{BlockIndex(0)});
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
        std::ssize(say(word + " " + std::string(random() % 90, 'z'), words[random() % words.size()], 2).recalled);
    check_every_hot_byte();
    tier_.check_invariants();
    pool_->check_invariants();
  }
  EXPECT_GT(n_recalled, 20);
}

TEST_P(Turns, a_hot_block_that_is_asked_for_stays_through_the_turn) {
  say("quagga " + kFiller);
  say("y", "quagga");
  ASSERT_TRUE(session_->residency().is_hot(BlockIndex(0)));
  const TurnStats again = say(std::string(40, 'z'), "quagga");
  EXPECT_TRUE(again.recalled.empty());
  EXPECT_TRUE(session_->residency().is_hot(BlockIndex(0)));
}

TEST_P(Turns, an_abandoned_step_leaves_no_trace) {
  say("quagga");
  const std::int32_t n_hot = pool_->n_hot();
  const Position end = session_->end();
  Turn turn(*session_, *vocabulary_->tokenize(std::string(30, 'z')));
  ASSERT_TRUE(turn.begin_step(30).ok());
  turn.abandon_step();
  EXPECT_EQ(pool_->n_hot(), n_hot);
  EXPECT_EQ(session_->end(), end);
  session_->check_invariants();
  EXPECT_EQ(turn.n_pending(), 30);
}

// Computes a text in steps of n_rows and tells the name of the last full block.
Hash128 name_of_last_full_block(Session& session, const Vocabulary& vocabulary, std::int32_t n_rows) {
  Turn turn(session, *vocabulary.tokenize(std::string(5 * kBlockSize + 3, 'a')));
  while (turn.n_pending() > 0) {
    EXPECT_TRUE(turn.begin_step(n_rows).ok());
    turn.end_step();
  }
  turn.settle();
  return session.exact_name(BlockIndex(4));
}

TEST_P(Turns, an_exact_name_tells_what_was_visible_and_not_how_it_was_cut) {
  const Hash128 in_small_steps = name_of_last_full_block(*session_, *vocabulary_, 1);
  EXPECT_EQ(name_of_last_full_block(*make_session(kBudgetBlocks), *vocabulary_, 9), in_small_steps);
  EXPECT_NE(name_of_last_full_block(*make_session(4), *vocabulary_, 1), in_small_steps)
      << "with four blocks hot at most, the first was a hole when the fifth was computed";
}

INSTANTIATE_TEST_SUITE_P(Layouts, Turns, ::testing::Values(KeyOrder::kByDim, KeyOrder::kByRow),
                         [](const auto& instance) { return instance.param == KeyOrder::kByDim ? "by_dim" : "by_row"; });

}  // namespace
}  // namespace ebb
