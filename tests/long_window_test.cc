// A model shaped as Gemma 3 at 8192 tokens: what its sliding layers hold is bounded by their window, at every step, and the
// logits are libllama's.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "model/random_model.h"
#include "tests/files.h"
#include "tests/solo_sessions.h"

namespace ebb::long_window_test {
namespace {

constexpr std::int32_t kTokens = 8192;
constexpr std::int32_t kWindow = 512;
constexpr std::int32_t kBlockSize = 64;
constexpr std::int32_t kChunk = 256;

std::vector<Token> story() {
  std::vector<Token> tokens;
  for (std::int32_t p = 0; p < kTokens; ++p) tokens.emplace_back((p * 37 + p * p % 101 + p / 7) % 320);
  return tokens;
}

std::int32_t n_hot(const Session& session, std::int32_t layer) {
  const BlockTable table = session.hot().tables().table(LayerIndex(layer), HeadIndex(0));
  return static_cast<std::int32_t>(table.size());
}

TEST(LongWindow, at_8192_tokens_sliding_layers_hold_a_window_and_logits_are_libllamas) {
  const TemporaryFile file(".gguf");
  ASSERT_TRUE(write_random_model({.architecture = "gemma3",
                                  .n_layers = 7,
                                  .n_heads = 2,
                                  .n_kv_heads = 1,
                                  .head_dim = 32,
                                  .n_ctx_train = 2 * kTokens,
                                  .tied = true,
                                  .sliding_window = kWindow},
                                 file.path())
                  .ok());
  const auto sessions = *SoloSessions::open(
      file.path(), {.kv_type = RowType::kF32, .block_size = kBlockSize, .n_ctx = kTokens}, "recency");
  const auto store = *ColdStore::open({.ram_bytes = std::size_t{64} << 20});
  Session session(sessions->deps(store.get()), {.budget_tokens = kTokens, .adopts = false});
  const std::vector<std::int32_t> windows = session.shape().windows;
  ASSERT_EQ(std::ranges::count_if(windows, [](std::int32_t window) { return window > 0; }), 6);

  // What the first row of a chunk sees, the chunk, and the blocks that both cut.
  constexpr std::int32_t kMostBlocks = (kWindow + kChunk) / kBlockSize + 2;
  Turn turn(session, Prompt(story()));
  Turn* const running = &turn;
  while (turn.n_pending() > 0) {
    ASSERT_TRUE(sessions->step({&running, 1}, kChunk));
    for (std::int32_t layer = 0; layer < session.shape().n_layers; ++layer) {
      const bool slides = windows[static_cast<std::size_t>(layer)] > 0;
      ASSERT_LE(n_hot(session, layer), slides ? kMostBlocks : session.n_blocks()) << "layer " << layer;
      ASSERT_EQ(slides || n_hot(session, layer) == session.n_blocks(), true) << "layer " << layer;
    }
  }
  const std::span<const float> row = sessions->solo().runner().logits(0);
  const std::vector<float> ours(row.begin(), row.end());
  turn.settle();
  session.check_invariants();
  // 128 blocks in the one layer that sees everything, a window's in the six others.
  EXPECT_LE(session.hot().n_hot_frames(), kTokens / kBlockSize + 6 * kMostBlocks);

  const auto theirs = *LlamaPeer::load(
      file.path(),
      {.n_threads = 2, .n_ctx = kTokens, .kv_type = RowType::kF32, .flash_attention = FlashAttention::kOff});
  const LogitMatrix logits = *theirs->logits(story());
  const auto last = logits.row(logits.n_rows - 1);
  ASSERT_EQ(last.size(), ours.size());
  const auto [low, high] = std::ranges::minmax(last);
  double worst = 0.0;
  for (std::size_t i = 0; i < ours.size(); ++i) worst = std::max(worst, std::abs(double{ours[i]} - double{last[i]}));
  RecordProperty("max_difference_of_range", std::to_string(worst / static_cast<double>(high - low)));
  EXPECT_LE(worst / static_cast<double>(high - low), 1e-3);
}

}  // namespace
}  // namespace ebb::long_window_test
