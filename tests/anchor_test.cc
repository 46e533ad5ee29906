// Anchors: what keys and queries are rotated for, and that nothing else goes by them (house.md §2).
#include <cstring>
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include "model/random_model.h"
#include "tests/files.h"
#include "tests/solo.h"

namespace ebb {
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

std::vector<Token> some_tokens(std::int32_t n_tokens) {
  std::mt19937_64 random(11);
  std::vector<Token> tokens;
  for (std::int32_t i = 0; i < n_tokens; ++i) tokens.emplace_back(static_cast<std::int32_t>(random() % 300));
  return tokens;
}

std::vector<std::byte> all_frames(Solo& solo, const Residency& residency) {
  std::vector<std::byte> bytes;
  std::vector<std::byte> frame(solo.memory().frame_bytes());
  for (std::int32_t b = 0; b < residency.n_blocks(); ++b) {
    for (std::int32_t layer = 0; layer < solo.shape().n_layers; ++layer) {
      for (std::int32_t head = 0; head < solo.shape().n_kv_heads; ++head) {
        solo.memory().read(residency.frame(BlockIndex(b), LayerIndex(layer), HeadIndex(head)), frame);
        bytes.insert(bytes.end(), frame.begin(), frame.end());
      }
    }
  }
  return bytes;
}

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
    const std::vector<Token> tokens = some_tokens(96);
    Residency residency(solo_->pool(), solo_->shape());
    for (std::int32_t n = 0; n < 96; n += kBlockSize) {
      EXPECT_TRUE(residency.open_block(placed.first + n).ok());
      residency.append(kBlockSize);
    }
    for (std::int32_t n = 0; n < 96; n += 48) {
      std::optional<Position> anchor = placed.anchor;
      if (anchor) anchor = *anchor + n;
      const SequenceInput input = {.tokens = std::span(tokens).subspan(static_cast<std::size_t>(n), 48),
                                   .first = placed.first + n,
                                   .anchor = anchor,
                                   .residency = &residency,
                                   .n_outputs = 1};
      EXPECT_TRUE(solo_->runner().run({&input, 1}).ok());
    }
    const auto logits = solo_->runner().logits(0);
    return {.logits = {logits.begin(), logits.end()}, .kv = all_frames(*solo_, residency)};
  }

  TemporaryFile file_{".gguf"};
  std::unique_ptr<Solo> solo_;
};

TEST_P(Anchors, at_the_positions_themselves_change_no_bit) {
  EXPECT_TRUE(same_bits(compute({Position(0), Position(0)}), compute({Position(0), std::nullopt})));
  EXPECT_TRUE(same_bits(compute({Position(1024), Position(1024)}), compute({Position(1024), std::nullopt})));
}

// Whole segments further, positions mean the same to every sum, so that all that is left is the rotation.
TEST_P(Anchors, rotate_queries_and_keys_as_those_positions_would) {
  const Computed moved = compute({Position(0), Position(3 * kSegmentTokens)});
  EXPECT_TRUE(same_bits(moved, compute({Position(3 * kSegmentTokens), std::nullopt})));
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

}  // namespace
}  // namespace ebb
