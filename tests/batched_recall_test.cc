// Several large blocks that come back in one turn, by several threads: what each brings in has nothing to do with the
// others, so it must be what one after the other gives, whether keys are turned on the way or not. Frames are filled by
// hand: blocks that are worth a thread are more than a test wants to compute. Meant for the thread sanitizer too.
#include <random>

#include <gtest/gtest.h>

#include "model/random_model.h"
#include "tests/files.h"
#include "tests/solo_sessions.h"

namespace ebb::batched_recall_test {
namespace {

constexpr std::int32_t kBlockSize = 128;
constexpr std::int32_t kBlocks = 12;  // of 1 MiB: worth three threads, where there are three cores

class BatchedRecall : public ::testing::Test {
 protected:
  void SetUp() override {
    const RandomModelSpec model = {
        .n_layers = 2, .n_embd = 32, .n_heads = 4, .n_kv_heads = 4, .head_dim = 128, .n_ctx_train = 8192};
    ASSERT_TRUE(write_random_model(model, file_.path()).ok());
    sessions_ = *SoloSessions::open(file_.path(), {.n_threads = 1, .block_size = kBlockSize, .n_ctx = 8192}, "recency");
    store_ = *ColdStore::open({.ram_bytes = std::size_t{64} << 20});
    Session session(sessions_->deps(store_.get()), options(RecallPlace::kOriginal));
    say(session);
    for (const BlockIndex block : all_blocks()) bytes_.push_back(sessions_->bytes_of(session, block));
    evict_all(session);
    image_ = session.image();
  }

  static SessionOptions options(RecallPlace place) {
    return {.budget_tokens = 2 * kBlocks * kBlockSize, .recall_place = place};
  }

  static std::vector<BlockIndex> all_blocks() {
    std::vector<BlockIndex> blocks;
    for (std::int32_t b = 0; b < kBlocks; ++b) blocks.emplace_back(b);
    return blocks;
  }

  // Every step fills the frames of its blocks; the store's thread copies them while the next ones are filled.
  void say(Session& session) {
    std::mt19937 random(17);
    std::normal_distribution<float> normal;
    const std::vector<Token> tokens(static_cast<std::size_t>(kBlocks) * kBlockSize, Token(65));
    Turn turn(session, Prompt(tokens));
    while (turn.n_pending() > 0) {
      const Result<SequenceInput> input = turn.begin_step(kBlockSize);
      ASSERT_TRUE(input.ok()) << input.status().message();
      const BlockIndex block(input->first.value() / kBlockSize);
      std::vector<float> values(sessions_->solo().memory().frame_bytes() / sizeof(float));
      for (std::int32_t layer = 0; layer < sessions_->solo().shape().n_layers; ++layer) {
        for (std::int32_t head = 0; head < sessions_->solo().shape().n_kv_heads; ++head) {
          for (float& value : values) value = normal(random);
          sessions_->solo().memory().write(
              session.hot().frames(block)[session.shape().head(LayerIndex(layer), HeadIndex(head))],
              std::as_bytes(std::span(values)));
        }
      }
      turn.end_step();
    }
    turn.settle();
  }

  static void evict_all(Session& session) { ASSERT_EQ(std::ssize(session.evict(all_blocks()).evicted), kBlocks); }

  std::unique_ptr<Session> restore(RecallPlace place) {
    return *Session::restore(sessions_->deps(store_.get()), options(place), image_);
  }

  static std::ptrdiff_t recall(Session& session, const std::vector<BlockIndex>& blocks) {
    return std::ssize(session.recall(blocks).recalled);
  }

  TemporaryFile file_{".gguf"};
  std::unique_ptr<SoloSessions> sessions_;
  std::unique_ptr<ColdStore> store_;
  std::vector<std::vector<std::byte>> bytes_;
  SessionImage image_;
};

TEST_F(BatchedRecall, at_their_own_positions_blocks_are_what_they_were) {
  const auto session = restore(RecallPlace::kOriginal);
  ASSERT_EQ(recall(*session, all_blocks()), kBlocks);
  for (const BlockIndex block : all_blocks()) {
    EXPECT_EQ(sessions_->bytes_of(*session, block), bytes_[block.index()]) << "block " << block.value();
  }
}

TEST_F(BatchedRecall, at_the_tail_blocks_are_what_they_are_one_by_one) {
  const auto together = restore(RecallPlace::kTail);
  const auto one_by_one = restore(RecallPlace::kTail);
  ASSERT_EQ(recall(*together, all_blocks()), kBlocks);
  for (const BlockIndex block : all_blocks()) {
    ASSERT_EQ(recall(*one_by_one, {block}), 1);
    EXPECT_EQ(together->anchor(block), one_by_one->anchor(block));
    EXPECT_EQ(sessions_->bytes_of(*together, block), sessions_->bytes_of(*one_by_one, block)) << block.value();
    EXPECT_NE(sessions_->bytes_of(*together, block), bytes_[block.index()]) << "it was not moved";
  }
}

TEST_F(BatchedRecall, one_that_is_lost_changes_nothing_for_the_others) {
  const auto session = restore(RecallPlace::kOriginal);
  const BlockIndex lost(5);
  store_->drop(session->exact_name(lost));
  ASSERT_EQ(recall(*session, all_blocks()), kBlocks - 1);
  for (const BlockIndex block : all_blocks()) {
    ASSERT_EQ(session->hot().is_hot(block), block != lost);
    if (block == lost) continue;
    EXPECT_EQ(sessions_->bytes_of(*session, block), bytes_[block.index()]) << "block " << block.value();
  }
}

}  // namespace
}  // namespace ebb::batched_recall_test
