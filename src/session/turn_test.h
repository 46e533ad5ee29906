// Turns: sessions without a model, for the tests of turns: frames are filled by hand, so that every byte that comes back
// can be told.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "session/turn.h"
#include "text/toy_vocabulary.h"

namespace ebb {

inline const std::string kFiller(120, 'x');

class Turns : public ::testing::TestWithParam<KeyOrder> {
 protected:
  static constexpr std::int32_t kBlockSize = 16;
  static constexpr std::int32_t kBudgetBlocks = 6;
  static constexpr std::int32_t kPoolBlocks = 60;
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
    const std::int32_t n_frames = kPoolBlocks * kLayers * kHeads;
    memory_ = *FrameMemory::open(*backend_, layout, n_frames);
    pool_ = std::make_unique<FramePool>(n_frames);
    session_ = make_session(kBudgetBlocks);
  }

  SessionDeps deps() {
    return {.pool = *pool_,
            .memory = *memory_,
            .vocabulary = *vocabulary_,
            .policy = policy_,
            .store = store_.get(),
            .hot = &hot_,
            .shape = {.n_layers = kLayers, .n_kv_heads = kHeads, .block_size = kBlockSize},
            .model = {1, 2},
            .n_ctx_train = 1 << 20};
  }

  std::unique_ptr<Session> make_session(std::int32_t budget_blocks, SessionOptions options = {}) {
    options.budget_tokens = budget_blocks * kBlockSize;
    return std::make_unique<Session>(deps(), options);
  }

  // In blocks; what it is then.
  std::int32_t set_budget(std::int32_t n_blocks) {
    return session_->set_budget(FrameBudget::of_tokens(n_blocks * kBlockSize, session_->shape()))
        .n_blocks(session_->shape());
  }

  // What a block's frame holds: numbers that no other block, layer or head has.
  [[nodiscard]] std::vector<std::byte> expected(BlockIndex block, std::int32_t layer, std::int32_t head) const {
    const auto place = static_cast<std::uint64_t>((block.value() * kLayers + layer) * kHeads + head);
    std::mt19937_64 random(place + (rounding_ << 32));
    std::vector<std::byte> bytes(memory_->frame_bytes());
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
  }

  // As the model would, for every block that the step touches.
  void fill(const SequenceInput& input) {
    std::vector<BlockIndex> blocks;
    for (Position p = input.first; p < input.first + static_cast<std::int32_t>(input.tokens.size()); p = p + 1) {
      if (blocks.empty() || blocks.back() != session_->hot().block_at(p)) blocks.push_back(session_->hot().block_at(p));
    }
    for (const BlockIndex block : blocks) {
      for_each_hot_head(block, [&](std::int32_t layer, std::int32_t head, FrameIndex frame) {
        memory_->write(frame, expected(block, layer, head));
      });
    }
  }

  void check_every_hot_byte() {
    std::vector<std::byte> written(memory_->frame_bytes());
    std::vector<std::byte> read(memory_->frame_bytes());
    for (const BlockIndex block : session_->hot().hot_blocks()) {
      for_each_hot_head(block, [&](std::int32_t layer, std::int32_t head, FrameIndex frame) {
        memory_->read(frame, read);
        written = expected(block, layer, head);
        if (GetParam() == KeyOrder::kByRow) clear_gaps(written);
        ASSERT_EQ(read, written) << "block " << block.value() << " layer " << layer << " head " << head;
      });
    }
  }

  template <class Act>
  void for_each_hot_head(BlockIndex block, const Act& act) const {
    session_->hot().hot_heads(block).for_each([&](std::size_t head) {
      act(static_cast<std::int32_t>(head) / kHeads, static_cast<std::int32_t>(head) % kHeads,
          session_->hot().frames(block)[head]);
    });
  }

  // Bytes that the layout leaves between its planes read as zero on devices.
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
    Turn turn(*session_, Prompt(*vocabulary_->tokenize(text)));
    turn.recall({.cues = find_cues(question), .max_blocks = max_blocks});
    compute(turn, 7);
    return turn.settle();
  }

  // Steps of up to n_rows rows, until nothing is pending.
  void compute(Turn& turn, std::int32_t n_rows) {
    while (turn.n_pending() > 0) {
      const Result<SequenceInput> input = turn.begin_step(n_rows);
      EXPECT_TRUE(input.ok()) << input.status().message();
      if (!input.ok()) break;
      fill(*input);
      turn.end_step();
      session_->check_invariants();
      EXPECT_LE(session_->hot().n_hot_frames(), session_->budget().n_frames);
    }
  }

  ToyFile vocabulary_file_{toy_bpe().bytes()};
  std::unique_ptr<Vocabulary> vocabulary_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<FrameMemory> memory_;
  std::unique_ptr<FramePool> pool_;
  HotBlocks hot_;
  std::shared_ptr<const Policy> policy_ = make_policy("recency").value();
  std::unique_ptr<ColdStore> store_ = *ColdStore::open({.ram_bytes = 1 << 20});
  // Stands for the last bits, in which what is computed in other company may differ.
  std::uint64_t rounding_ = 0;
  std::unique_ptr<Session> session_;
};

}  // namespace ebb
