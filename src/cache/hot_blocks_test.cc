// Frames of several residencies.
#include "cache/hot_blocks.h"

#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "cache/residency.h"

namespace ebb {
namespace {

constexpr Residency::Shape kShape = {.n_layers = 2, .n_kv_heads = 3, .block_size = 8};

BlockIndex open_with(Residency& residency, std::int32_t n_tokens) {
  const BlockIndex block = *residency.open_block(residency.end());
  residency.append(n_tokens);
  return block;
}

// One residency of several over a pool, and what its blocks should hold: full ones may be shared.
class Sharer {
 public:
  // What was written last into each frame, by whom ever.
  using Written = std::map<FrameIndex, int>;

  Sharer(FramePool& pool, HotBlocks& hot, Written& written)
      : residency_(std::make_unique<Residency>(pool, kShape, nullptr, &hot)), hot_(hot), written_(written) {}

  static Hash128 name(int content) { return {.low = static_cast<std::uint64_t>(content)}; }

  // A full block of that content: hot, listed or shared where others have it.
  void add(int content) {
    const BlockIndex block = residency_->add_cold_block(residency_->end(), kShape.block_size);
    contents_.push_back(content);
    bring_back(block);
  }
  void bring_back(BlockIndex block) {
    const int content = contents_[block.index()];
    if (hot_.find(name(content)) != nullptr) return residency_->share(block, name(content));
    if (residency_->is_hot(block) || !residency_->admit(block).ok()) return;
    write(block, content);
    residency_->publish(block, name(content), std::vector<Token>(kShape.block_size), Position(content));
  }
  // Its frames get content that no name promises.
  void rewrite(BlockIndex block, int content) {
    if (!residency_->is_hot(block) || !residency_->make_own(block).ok()) return;
    EXPECT_FALSE(residency_->is_shared(block));
    write(block, content);
    contents_[block.index()] = content;
  }
  void drop_last() {
    residency_->truncate_last(0);
    contents_.pop_back();
  }
  void evict(BlockIndex block) { residency_->evict(block); }
  [[nodiscard]] std::int32_t n_blocks() const { return residency_->n_blocks(); }
  [[nodiscard]] const Residency& residency() const { return *residency_; }

  void collect_frames(std::set<FrameIndex>& frames) const {
    for_each_frame([&](FrameIndex frame, int) { frames.insert(frame); });
  }
  void check() const {
    residency_->check_invariants();
    for_each_frame([&](FrameIndex frame, int content) { ASSERT_EQ(written_.at(frame), content); });
  }

 private:
  template <class Look>
  void for_each_frame(const Look& look) const {
    for (std::int32_t l = 0; l < kShape.n_layers; ++l) {
      for (std::int32_t h = 0; h < kShape.n_kv_heads; ++h) {
        for (const TableEntry& entry : residency_->table(LayerIndex(l), HeadIndex(h))) {
          look(entry.frame, contents_[static_cast<std::size_t>(entry.begin.value() / kShape.block_size)]);
        }
      }
    }
  }
  void write(BlockIndex block, int content) {
    for (std::int32_t l = 0; l < kShape.n_layers; ++l) {
      for (std::int32_t h = 0; h < kShape.n_kv_heads; ++h) {
        written_[residency_->frame(block, LayerIndex(l), HeadIndex(h))] = content;
      }
    }
  }

  std::unique_ptr<Residency> residency_;
  HotBlocks& hot_;
  Written& written_;
  std::vector<int> contents_;
};

TEST(HotBlocks, TakesTheFramesThatAnotherPublishedAndLeavesThemWhenItDies) {
  FramePool pool(12);
  HotBlocks hot;
  Sharer::Written written;
  auto first = std::make_unique<Sharer>(pool, hot, written);
  Sharer second(pool, hot, written);
  first->add(1);
  second.add(1);
  EXPECT_EQ(pool.n_hot(), 6);
  EXPECT_TRUE(second.residency().is_shared(BlockIndex(0)));
  EXPECT_EQ(second.residency().n_hot_frames(), 6);
  first.reset();
  EXPECT_EQ(pool.n_hot(), 6);
  EXPECT_FALSE(second.residency().is_shared(BlockIndex(0)));
  EXPECT_EQ(hot.size(), 1U);
  second.check();
  second.evict(BlockIndex(0));
  EXPECT_EQ(pool.n_hot(), 0);
  EXPECT_EQ(hot.size(), 0U);
}

TEST(HotBlocks, GetsFramesOfItsOwnBeforeItWritesWhatOthersUse) {
  FramePool pool(12);
  HotBlocks hot;
  Sharer::Written written;
  Sharer first(pool, hot, written);
  Sharer second(pool, hot, written);
  first.add(1);
  second.add(1);
  second.rewrite(BlockIndex(0), 7);
  EXPECT_EQ(pool.n_hot(), 12);
  first.check();
  second.check();
  first.rewrite(BlockIndex(0), 8);
  EXPECT_EQ(pool.n_hot(), 12) << "nobody else used them any more";
  EXPECT_EQ(hot.size(), 0U);
  first.check();
  second.check();
}

TEST(HotBlocks, RefusesFramesOfItsOwnThatThereAreNotAndChangesNothing) {
  FramePool pool(11);
  HotBlocks hot;
  Residency first(pool, kShape, nullptr, &hot);
  Residency second(pool, kShape, nullptr, &hot);
  const Hash128 name = {.low = 1};
  first.publish(open_with(first, 8), name, std::vector<Token>(8), Position(0));
  second.share(second.add_cold_block(Position(0), 8), name);
  EXPECT_EQ(second.make_own(BlockIndex(0)).code(), Code::kOutOfBudget);
  EXPECT_TRUE(second.is_shared(BlockIndex(0)));
  EXPECT_EQ(second.frame(BlockIndex(0), LayerIndex(1), HeadIndex(2)),
            first.frame(BlockIndex(0), LayerIndex(1), HeadIndex(2)));
  first.check_invariants();
  second.check_invariants();
}

TEST(HotBlocks, GivesItsOwnFramesBackForThoseThatAnotherPublished) {
  FramePool pool(12);
  HotBlocks hot;
  Residency first(pool, kShape, nullptr, &hot);
  Residency second(pool, kShape, nullptr, &hot);
  const Hash128 name = {.low = 1};
  first.publish(open_with(first, 8), name, std::vector<Token>(8), Position(0));
  const BlockIndex block = open_with(second, 8);
  EXPECT_EQ(pool.n_hot(), 12);
  second.share(block, name);
  EXPECT_EQ(pool.n_hot(), 6);
  EXPECT_EQ(second.n_hot_frames(), 6);
  second.check_invariants();
}

TEST(HotBlocks, KeepsWhatItHoldsWhileOthersShareRewriteAndDie) {
  constexpr std::size_t kSharers = 4;
  constexpr std::uint64_t kContents = 9;
  std::mt19937_64 random(11);
  FramePool pool(90);
  HotBlocks hot;
  Sharer::Written written;
  std::vector<std::unique_ptr<Sharer>> sharers;
  for (std::size_t i = 0; i < kSharers; ++i) sharers.push_back(std::make_unique<Sharer>(pool, hot, written));
  int n_rewritten = 0;
  std::size_t n_saved_frames = 0;
  for (int i = 0; i < 20000; ++i) {
    std::unique_ptr<Sharer>& sharer = sharers[random() % kSharers];
    const std::int32_t n_blocks = sharer->n_blocks();
    const BlockIndex any(n_blocks > 0 ? static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n_blocks)) : 0);
    const std::uint64_t choice = random() % 40;
    if (choice == 0) {
      sharer = std::make_unique<Sharer>(pool, hot, written);
    } else if (choice < 14 || n_blocks == 0) {
      if (n_blocks < 8) sharer->add(1 + static_cast<int>(random() % kContents));
    } else if (choice < 20) {
      sharer->evict(any);
    } else if (choice < 30) {
      sharer->bring_back(any);
    } else if (choice < 34) {
      sharer->rewrite(any, 1000 + ++n_rewritten);
    } else if (choice < 36) {
      sharer->drop_last();
    }
    std::set<FrameIndex> in_use;
    std::int32_t n_uses = 0;
    for (const auto& each : sharers) {
      each->check();
      each->collect_frames(in_use);
      n_uses += each->residency().n_hot_frames();
    }
    if (HasFatalFailure()) FAIL() << "operation " << i;
    pool.check_invariants();
    ASSERT_EQ(static_cast<std::size_t>(pool.n_hot()), in_use.size());
    n_saved_frames += static_cast<std::size_t>(n_uses) - in_use.size();
  }
  EXPECT_GT(n_saved_frames, 100000U);
  EXPECT_GT(n_rewritten, 1000);
  sharers.clear();
  EXPECT_EQ(pool.n_hot(), 0);
  EXPECT_EQ(hot.size(), 0U);
}

TEST(HotBlocksDeathTest, StopsOnWritingWhatOthersMayUse) {
  FramePool pool(24);
  HotBlocks hot;
  Residency residency(pool, kShape, nullptr, &hot);
  const BlockIndex open = open_with(residency, 5);
  EXPECT_DEATH(residency.publish(open, {.low = 1}, std::vector<Token>(5), Position(0)), "cannot be published");
  residency.append(3);
  residency.publish(open, {.low = 1}, std::vector<Token>(8), Position(0));
  EXPECT_DEATH(residency.truncate_last(4), "frames that others may use, cut to 4");
  const BlockIndex other = residency.add_cold_block(Position(8), 8);
  EXPECT_DEATH(residency.share(other, {.low = 2}), "hot nowhere");
}

}  // namespace
}  // namespace ebb
