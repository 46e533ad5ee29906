// Anchors: what keys and queries are rotated for, that nothing else goes by them (house.md §2), and that a block moved
// by a rotation of its saved keys holds what the model would have computed there.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <ostream>

#include <gtest/gtest.h>

#include "model/key_rotation.h"
#include "model/random_model.h"
#include "tests/files.h"
#include "tests/solo.h"

namespace ebb::anchor_test {
namespace {

constexpr std::int32_t kBlockSize = 16;

struct Placed {
  Position first;
  std::optional<Position> anchor;
};

struct Computed {
  std::vector<float> logits;  // of the last token
  std::vector<std::byte> kv;  // all frames, block by block
};

bool same_bits(const Computed& a, const Computed& b) {
  return a.kv == b.kv && a.logits.size() == b.logits.size() &&
         std::memcmp(a.logits.data(), b.logits.data(), a.logits.size() * sizeof(float)) == 0;
}

std::vector<std::byte> bytes_of(Solo& solo, std::span<const FrameIndex> frames) {
  std::vector<std::byte> bytes;
  std::vector<std::byte> frame(solo.memory().frame_bytes());
  for (const FrameIndex index : frames) {
    solo.memory().read(index, frame);
    bytes.insert(bytes.end(), frame.begin(), frame.end());
  }
  return bytes;
}

std::vector<std::byte> all_frames(Solo& solo, const HotSet& hot) {
  std::vector<std::byte> bytes;
  for (const BlockIndex block : hot.hot_blocks()) {
    const std::vector<std::byte> own = bytes_of(solo, hot.frames(block));
    bytes.insert(bytes.end(), own.begin(), own.end());
  }
  return bytes;
}

// Whole blocks from any position on, which is more than a hot set gives: one begins at 0.
class ToyBlocks {
 public:
  ToyBlocks(Solo& solo, Position first, std::int32_t n_blocks)
      : pool_(solo.pool()), tables_(solo.shape().n_layers, solo.shape().n_kv_heads) {
    for (std::int32_t b = 0; b < n_blocks; ++b) {
      std::vector<FrameIndex> own(solo.shape().n_heads());
      EXPECT_TRUE(pool_.acquire(own).ok());
      for (std::size_t head = 0; head < own.size(); ++head) {
        tables_.entries(head).push_back({.frame = own[head], .begin = first + b * kBlockSize, .n_tokens = kBlockSize});
      }
      frames_.insert(frames_.end(), own.begin(), own.end());
    }
    tables_.set_end(first + n_blocks * kBlockSize);
  }
  ~ToyBlocks() { pool_.release(frames_); }
  ToyBlocks(const ToyBlocks&) = delete;
  ToyBlocks& operator=(const ToyBlocks&) = delete;

  [[nodiscard]] const FrameTables& tables() const { return tables_; }
  [[nodiscard]] std::span<const FrameIndex> frames() const { return frames_; }

 private:
  FramePool& pool_;
  FrameTables tables_;
  std::vector<FrameIndex> frames_;
};

class Anchors : public ::testing::TestWithParam<bool> {
 protected:
  // A sliding window, and two frequencies of rotation.
  void SetUp() override {
    const RandomModelSpec spec = {
        .architecture = "gemma3", .n_layers = 6, .head_dim = 32, .tied = true, .sliding_window = 40};
    ASSERT_TRUE(write_random_model(spec, file_.path()).ok());
    SoloOptions options = {.block_size = kBlockSize, .composed = GetParam()};
    Result<std::unique_ptr<Solo>> solo = Solo::open(file_.path(), options);
    ASSERT_TRUE(solo.ok()) << solo.status().message();
    solo_ = *std::move(solo);
  }

  // 96 tokens in two steps, from `placed` on.
  Computed compute(const Placed& placed) {
    const std::vector<Token> tokens = some_tokens(96, 11);
    const ToyBlocks blocks(*solo_, placed.first, 96 / kBlockSize);
    for (std::int32_t n = 0; n < 96; n += 48) {
      std::optional<Position> anchor = placed.anchor;
      if (anchor) anchor = *anchor + n;
      const SequenceInput input = {.tokens = std::span(tokens).subspan(static_cast<std::size_t>(n), 48),
                                   .first = placed.first + n,
                                   .anchor = anchor,
                                   .tables = &blocks.tables(),
                                   .n_outputs = 1};
      EXPECT_TRUE(solo_->runner().run({&input, 1}).ok());
    }
    const auto logits = solo_->runner().logits(0);
    return {.logits = {logits.begin(), logits.end()}, .kv = bytes_of(*solo_, blocks.frames())};
  }

  TemporaryFile file_{".gguf"};
  std::unique_ptr<Solo> solo_;
};

TEST_P(Anchors, at_the_positions_themselves_change_no_bit) {
  EXPECT_TRUE(same_bits(compute({Position(0), Position(0)}), compute({Position(0), std::nullopt})));
  EXPECT_TRUE(same_bits(compute({Position(1024), Position(1024)}), compute({Position(1024), std::nullopt})));
}

// Whole splits further, positions mean the same to every sum, so that all that is left is the rotation.
TEST_P(Anchors, rotate_queries_and_keys_as_those_positions_would) {
  const Computed moved = compute({Position(0), Position(3 * kSplitTokens)});
  EXPECT_TRUE(same_bits(moved, compute({Position(3 * kSplitTokens), std::nullopt})));
  EXPECT_FALSE(same_bits(moved, compute({Position(0), std::nullopt})));
}

TEST_P(Anchors, shifted_together_change_logits_by_rounding_only) {
  const Computed plain = compute({Position(0), std::nullopt});
  const Computed moved = compute({Position(0), Position(777)});
  EXPECT_NE(moved.kv, plain.kv);
  double worst = 0.0;
  for (std::size_t i = 0; i < plain.logits.size(); ++i) {
    worst = std::max(worst, std::abs(double{moved.logits[i]} - double{plain.logits[i]}));
  }
  // Logits spread by about 4; ggml computes angles in f32, whose last bit is 3e-5 of a radian here.
  EXPECT_LT(worst, 2e-3);
}

INSTANTIATE_TEST_SUITE_P(Runner, Anchors, ::testing::Bool(),
                         [](const auto& instance) { return instance.param ? "composed" : "kernels"; });

struct Moving {
  std::string name;
  RandomModelSpec spec;
  RowType kv = RowType::kF32;
  bool composed = false;

  friend void PrintTo(const Moving& value, std::ostream* out) { *out << value.name; }
};

std::vector<Moving> movings() {
  const RandomModelSpec yarn = {.architecture = "qwen3",
                                .head_dim = 64,
                                .rope_freq_base = 1e6F,
                                .rope_scaling = RopeScaling::kYarn,
                                .rope_factor = 4.0F,
                                .rope_orig_ctx = 512};
  return {
      {"llama", {}},
      {"llama_linear", {.rope_scaling = RopeScaling::kLinear, .rope_factor = 2.0F}},
      {"llama3", {.head_dim = 64, .rope_freq_base = 500000.0F, .rope_orig_ctx = 256, .llama3_factors = true}},
      {"qwen2", {.architecture = "qwen2"}},
      {"qwen3_yarn", yarn},
      {"qwen3_yarn_f16_by_row", yarn, RowType::kF16, true},
      {"gemma3", {.architecture = "gemma3", .n_layers = 6, .tied = true, .sliding_window = 40}},
      {"gemma3_bf16", {.architecture = "gemma3", .n_layers = 6, .tied = true, .sliding_window = 40}, RowType::kBF16},
      {"llama_q8_0", {.n_embd = 128, .head_dim = 32}, RowType::kQ8_0},
      {"llama_q8_0_by_row", {.n_embd = 128, .head_dim = 32}, RowType::kQ8_0, true},
      {"llama_kivi4", {.n_embd = 128, .head_dim = 32}, RowType::kKivi4},
  };
}

std::vector<Moving> float_movings() {
  std::vector<Moving> all = movings();
  std::erase_if(all, [](const Moving& moving) { return moving.kv != RowType::kF32; });
  return all;
}

// What a row type keeps of a number, relative to the largest of its group; f32 stands for ggml's own angles, which it
// rounds to f32 (1e-4 of a radian at the anchors used here).
double precision(RowType type) {
  switch (type) {
    case RowType::kF32: return 2e-4;
    case RowType::kF16: return 2e-3;
    case RowType::kBF16: return 1e-2;
    case RowType::kQ8_0: return 1.5e-2;
    case RowType::kKivi4: return 0.15;
  }
  return 0.0;
}

class MovedBlocks : public ::testing::TestWithParam<Moving> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_random_model(GetParam().spec, file_.path()).ok());
    SoloOptions options = {
        .kv_type = GetParam().kv, .block_size = kBlockSize, .n_ctx = 256, .composed = GetParam().composed};
    Result<std::unique_ptr<Solo>> solo = Solo::open(file_.path(), options);
    ASSERT_TRUE(solo.ok()) << solo.status().message();
    solo_ = *std::move(solo);
    hot_ = solo_->make_hot();
    // Where the last block is not full, its other slots must stay as they are.
    ASSERT_TRUE(hot_->open(kTokens).ok());
    hot_->append(some_tokens(kTokens, 11));
  }

  void TearDown() override { hot_.reset(); }

  void prefill(std::int32_t anchor) {
    const std::vector<Token> tokens = some_tokens(kTokens, 11);
    const SequenceInput input = {
        .tokens = tokens, .first = Position(0), .anchor = Position(anchor), .tables = &hot_->tables(), .n_outputs = 1};
    ASSERT_TRUE(solo_->runner().run({&input, 1}).ok());
  }

  std::vector<float> next(std::int32_t anchor) {
    const Token token(7);
    EXPECT_TRUE(hot_->open(1).ok());
    const SequenceInput input = {.tokens = {&token, 1},
                                 .first = hot_->end(),
                                 .anchor = Position(anchor + hot_->end().value()),
                                 .tables = &hot_->tables(),
                                 .n_outputs = 1};
    EXPECT_TRUE(solo_->runner().run({&input, 1}).ok());
    hot_->drop_rows();
    const auto logits = solo_->runner().logits(0);
    return {logits.begin(), logits.end()};
  }

  // Saves every block, moves it, and writes it back.
  void move_all(std::int32_t n_anchors) {
    const BlockMover mover(solo_->model(), solo_->memory().layout());
    FrameMemory& memory = solo_->memory();
    for (const BlockIndex block : hot_->hot_blocks()) {
      const bool open = hot_->is_open(block);
      const std::span<const FrameIndex> frames = open ? hot_->open_frames(block) : hot_->frames(block);
      const std::size_t frame_bytes = open ? memory.open_frame_bytes() : memory.frame_bytes();
      std::vector<std::byte> bytes(frames.size() * frame_bytes);
      for (std::size_t i = 0; i < frames.size(); ++i) {
        const auto out = std::span(bytes).subspan(i * frame_bytes, frame_bytes);
        open ? memory.read_open(frames[i], out) : memory.read(frames[i], out);
      }
      const std::int32_t n_tokens = hot_->span(block).n_tokens();
      const HeadSet all = solo_->shape().all_heads();
      open ? mover.move_open(bytes, all, n_tokens, n_anchors) : mover.move(bytes, all, n_tokens, n_anchors);
      for (std::size_t i = 0; i < frames.size(); ++i) {
        const auto moved = std::span(bytes).subspan(i * frame_bytes, frame_bytes);
        open ? memory.write_open(frames[i], moved) : memory.write(frames[i], moved);
      }
    }
  }

  static constexpr std::int32_t kTokens = 85;

  TemporaryFile file_{".gguf"};
  std::unique_ptr<Solo> solo_;
  std::unique_ptr<HotSet> hot_;
};

TEST_P(MovedBlocks, serve_as_if_they_had_been_computed_at_the_other_anchor) {
  for (const auto& [from, to] : {std::pair{0, 500}, {700, 100}}) {
    prefill(to);
    const std::vector<float> computed = next(to);
    prefill(from);
    const std::vector<float> unmoved = next(to);
    move_all(to - from);
    const std::vector<float> moved = next(to);
    const auto [low, high] = std::ranges::minmax(computed);
    const auto difference = [&](const std::vector<float>& logits) {
      double worst = 0.0;
      for (std::size_t i = 0; i < logits.size(); ++i) {
        worst = std::max(worst, std::abs(double{logits[i]} - double{computed[i]}));
      }
      return worst / (double{high} - double{low});
    };
    EXPECT_LT(difference(moved), precision(GetParam().kv)) << from << " to " << to;
    EXPECT_GT(difference(unmoved), 2.0 * difference(moved)) << "without the move, anchors should have been noticed";
  }
}

// Other row types are compared in key_rotation_test.cc.
class MovedFloatBlocks : public MovedBlocks {};

TEST_P(MovedFloatBlocks, hold_the_keys_that_the_model_computes_at_the_other_anchor) {
  prefill(900);
  const std::vector<std::byte> computed = all_frames(*solo_, *hot_);
  prefill(20);
  move_all(880);
  const std::vector<std::byte> moved = all_frames(*solo_, *hot_);
  double worst = 0.0;
  double greatest = 0.0;
  for (std::size_t i = 0; i < computed.size(); i += sizeof(float)) {
    float x = 0.0F;
    float y = 0.0F;
    std::memcpy(&x, &computed[i], sizeof(x));
    std::memcpy(&y, &moved[i], sizeof(y));
    worst = std::max(worst, std::abs(double{x} - double{y}));
    greatest = std::max(greatest, std::abs(double{x}));
  }
  EXPECT_GT(greatest, 0.5);
  EXPECT_LT(worst, precision(RowType::kF32) * greatest);
}

TEST_P(MovedBlocks, by_no_anchors_keep_every_byte) {
  prefill(3);
  const std::vector<std::byte> before = all_frames(*solo_, *hot_);
  move_all(0);
  EXPECT_EQ(all_frames(*solo_, *hot_), before);
}

INSTANTIATE_TEST_SUITE_P(Models, MovedFloatBlocks, ::testing::ValuesIn(float_movings()),
                         [](const auto& instance) { return instance.param.name; });
INSTANTIATE_TEST_SUITE_P(Models, MovedBlocks, ::testing::ValuesIn(movings()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace ebb::anchor_test
