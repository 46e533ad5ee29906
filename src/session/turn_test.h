// Turns: sessions without a model, for the tests of turns: frames are filled by hand, so that every byte that comes back
// can be told.
#pragma once

#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "session/turn.h"
#include "text/toy_vocabulary.h"

namespace ebb {

class Turns : public ::testing::TestWithParam<KeyOrder> {
 protected:
  static constexpr std::int32_t kBlockSize = 16;
  static constexpr std::int32_t kBudgetBlocks = 6;
  static constexpr std::int32_t kLayers = 2;
  static constexpr std::int32_t kHeads = 3;

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

  SessionParts parts() {
    return {.pool = *pool_,
            .memory = *memory_,
            .vocabulary = *vocabulary_,
            .policy = *policy_,
            .store = store_.get(),
            .hot = &hot_,
            .shape = {.n_layers = kLayers, .n_kv_heads = kHeads, .block_size = kBlockSize},
            .model = {1, 2},
            .n_ctx_train = 1 << 20};
  }

  std::unique_ptr<Session> make_session(std::int32_t budget_blocks, SessionOptions options = {}) {
    options.budget_tokens = budget_blocks * kBlockSize;
    return std::make_unique<Session>(parts(), options);
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
  HotBlocks hot_;
  std::unique_ptr<Policy> policy_ = make_recency_policy();
  std::unique_ptr<ColdStore> store_ = *ColdStore::open({.ram_bytes = 1 << 20});
  std::set<std::int32_t> filled_;
  std::unique_ptr<Session> session_;
};

}  // namespace ebb
