// What policies are told of what frames hold: that of the frames, of every block that is full, whenever it came.
#include <gtest/gtest.h>

#include "session/turn_test.h"

namespace ebb {
namespace {

// Lets the oldest go, and remembers what it was told.
class Watcher final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "watcher"; }
  explicit Watcher(const Ask& ask) : ask_(ask) {}
  [[nodiscard]] Ask asks() const override { return ask_; }
  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    if (scope.index == 0) scopes_.clear();
    blocks_ = evidence.blocks;
    scopes_.push_back(scope);
    std::vector<double> scores;
    for (std::size_t i = 0; i < scope.rows.size(); ++i) scores.push_back(static_cast<double>(i));
    return scores;
  }

  [[nodiscard]] const std::vector<ScopeEvidence>& scopes() const { return scopes_; }
  [[nodiscard]] BlockIndex block(const ScopeRow& row) const {
    return blocks_[static_cast<std::size_t>(row.block)].block;
  }

 private:
  Ask ask_;
  mutable std::vector<BlockEvidence> blocks_;
  mutable std::vector<ScopeEvidence> scopes_;
};

std::vector<float> of(const std::vector<float>& column, std::size_t row, std::size_t n) {
  const auto begin = column.begin() + static_cast<std::ptrdiff_t>(row * n);
  return {begin, begin + static_cast<std::ptrdiff_t>(n)};
}

class FrameEvidence : public Turns {
 protected:
  FrameEvidence() { session_ = make_session(kBudgetBlocks, {.policy = watcher_}); }

  // What the last choice was told. Which blocks it was told of.
  std::vector<BlockIndex> check_last_choice() {
    const FrameLayout& layout = memory_->layout();
    std::vector<BlockIndex> read;
    for (const ScopeEvidence& scope : watcher_->scopes()) {
      for (std::size_t i = 0; i < scope.rows.size(); ++i) {
        const BlockIndex block = watcher_->block(scope.rows[i]);
        if (!scope.is_read[i]) {
          EXPECT_EQ(of(scope.values.mean, i, 24), std::vector<float>(24, 0.0F)) << block.value();
          continue;
        }
        if (scope.index == 0) read.push_back(block);
        const FrameDigest digest = digest_frame(layout, expected(block, scope.index / kHeads, scope.index % kHeads),
                                                kBlockSize, {.directions = true, .ranges = true, .value_means = true});
        EXPECT_EQ(scope.key_norm[i], double{digest.key_norm});
        EXPECT_EQ(of(scope.key_direction, i, 16), digest.key_direction);
        EXPECT_EQ(of(scope.keys.least, i, 16), digest.keys.least);
        EXPECT_EQ(of(scope.keys.mean, i, 16), digest.keys.mean);
        EXPECT_EQ(of(scope.values.greatest, i, 24), digest.values.greatest);
        EXPECT_EQ(of(scope.values.mean, i, 24), digest.values.mean);
      }
    }
    return read;
  }

  std::shared_ptr<Watcher> watcher_ =
      std::make_shared<Watcher>(Ask{.scope = Scope::kHead, .keys = true, .ranges = true, .value_means = true});
};

TEST_P(FrameEvidence, is_that_of_full_blocks_and_none_of_the_one_that_is_written_to) {
  const std::string text(kBlockSize * kBudgetBlocks / 2, 'a');
  say(text);
  say(text + text);
  ASSERT_EQ(watcher_->scopes().size(), static_cast<std::size_t>(kLayers * kHeads));
  const std::vector<BlockIndex> read = check_last_choice();
  EXPECT_GE(std::ssize(read), kBudgetBlocks - 1);
  for (const BlockIndex block : read) EXPECT_TRUE(session_->hot().is_full(block));
}

TEST_P(FrameEvidence, is_there_again_of_a_block_that_came_back) {
  const std::string text(kBlockSize * kBudgetBlocks, 'a');
  say(text);
  say(text);
  ASSERT_FALSE(session_->hot().is_hot(BlockIndex(0)));
  session_->recall(std::vector{BlockIndex(0)});
  ASSERT_TRUE(session_->hot().is_hot(BlockIndex(0)));
  say(std::string(kBlockSize, 'b'));
  const std::vector<BlockIndex> read = check_last_choice();
  EXPECT_NE(std::ranges::find(read, BlockIndex(0)), read.end());
}

TEST_P(FrameEvidence, of_keys_is_that_of_one_head_behind_the_other_where_a_layers_heads_choose_together) {
  const auto watcher = std::make_shared<Watcher>(Ask{.scope = Scope::kLayer, .keys = true});
  session_ = make_session(kBudgetBlocks, {.policy = watcher});
  say(std::string(kBlockSize * (kBudgetBlocks + 1), 'a'));
  // Of one block two heads of three stay in the first layer.
  HeadSet first(session_->shape().n_heads());
  first.add(0);
  session_->evict(std::vector{session_->hot().hot_blocks()[1]}, first);
  (void)session_->scores();
  ASSERT_EQ(watcher->scopes().size(), static_cast<std::size_t>(kLayers));
  std::size_t n_read = 0;
  std::size_t n_partly = 0;
  for (const ScopeEvidence& scope : watcher->scopes()) {
    ASSERT_EQ(scope.n_key_heads, 3U);
    ASSERT_EQ(scope.n_key_dims, 48U);
    for (std::size_t i = 0; i < scope.rows.size(); ++i) {
      const BlockIndex block = watcher->block(scope.rows[i]);
      const std::vector<float> all = of(scope.key_direction, i, 48);
      double norms = 0.0;
      for (std::int32_t head = 0; head < kHeads && scope.is_read[i]; ++head) {
        const std::vector<float> direction(all.begin() + head * 16, all.begin() + head * 16 + 16);
        if (direction == std::vector<float>(16, 0.0F)) continue;
        const FrameDigest digest =
            digest_frame(memory_->layout(), expected(block, scope.index, head), kBlockSize, {.directions = true});
        EXPECT_EQ(direction, digest.key_direction);
        norms += double{digest.key_norm} / scope.rows[i].n_frames;
        ++n_read;
      }
      EXPECT_NEAR(scope.key_norm[i], norms, 1e-3 * norms);
      n_partly += scope.rows[i].n_frames < kHeads ? 1 : 0;
    }
  }
  EXPECT_GT(n_read, static_cast<std::size_t>(kBudgetBlocks));
  EXPECT_GT(n_partly, 0U);
}

INSTANTIATE_TEST_SUITE_P(Layouts, FrameEvidence, ::testing::Values(KeyOrder::kByDim, KeyOrder::kByRow),
                         [](const auto& order) { return order.param == KeyOrder::kByDim ? "by_dim" : "by_row"; });

}  // namespace
}  // namespace ebb
