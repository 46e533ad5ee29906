#include "cache/residency.h"

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ebb {
namespace {

constexpr Residency::Shape kShape = {.n_layers = 2, .n_kv_heads = 3, .block_size = 8};

// Opens a block at the end and appends n_tokens.
BlockIndex open_with(Residency& residency, std::int32_t n_tokens, std::int32_t gap = 0) {
  const BlockIndex block = *residency.open_block(residency.end() + gap);
  if (n_tokens > 0) residency.append(n_tokens);
  return block;
}

std::vector<std::int32_t> begins(BlockTable table) {
  std::vector<std::int32_t> out;
  for (const TableEntry& entry : table) out.push_back(entry.begin.value());
  return out;
}

TEST(Residency, OpensBlocksHotInEveryHead) {
  FramePool pool(12);
  Residency residency(pool, kShape);
  EXPECT_EQ(residency.end(), Position(0));
  const BlockIndex block = open_with(residency, 5, 4);
  EXPECT_TRUE(residency.is_hot(block));
  EXPECT_EQ(residency.span(block), (Span{Position(4), Position(9)}));
  EXPECT_EQ(residency.end(), Position(9));
  EXPECT_EQ(residency.n_hot_frames(), 6);
  EXPECT_EQ(pool.n_hot(), 6);
  std::set<FrameIndex> frames;
  for (std::int32_t l = 0; l < 2; ++l) {
    for (std::int32_t h = 0; h < 3; ++h) {
      const BlockTable table = residency.table(LayerIndex(l), HeadIndex(h));
      ASSERT_EQ(table.size(), 1U);
      EXPECT_EQ(table[0].span(), residency.span(block));
      EXPECT_EQ(table[0].frame, residency.frame(block, LayerIndex(l), HeadIndex(h)));
      frames.insert(table[0].frame);
    }
  }
  EXPECT_EQ(frames.size(), 6U);
}

TEST(Residency, RefusesABlockThatThePoolHasNoFramesForAndChangesNothing) {
  FramePool pool(11);
  Residency residency(pool, kShape);
  open_with(residency, 8);
  const auto refused = residency.open_block(Position(8));
  EXPECT_EQ(refused.status().code(), Code::kOutOfBudget);
  EXPECT_EQ(residency.n_blocks(), 1);
  EXPECT_EQ(pool.n_hot(), 6);
  residency.check_invariants();
}

TEST(Residency, EvictsOneHeadAndLeavesTheOthersHot) {
  FramePool pool(12);
  Residency residency(pool, kShape);
  const BlockIndex first = open_with(residency, 8);
  open_with(residency, 3);
  residency.evict(first, LayerIndex(1), HeadIndex(2));
  EXPECT_FALSE(residency.is_hot(first));
  EXPECT_FALSE(residency.is_hot(first, LayerIndex(1), HeadIndex(2)));
  EXPECT_TRUE(residency.is_hot(first, LayerIndex(1), HeadIndex(1)));
  EXPECT_EQ(begins(residency.table(LayerIndex(1), HeadIndex(2))), std::vector<std::int32_t>{8});
  EXPECT_EQ(begins(residency.table(LayerIndex(1), HeadIndex(1))), (std::vector<std::int32_t>{0, 8}));
  EXPECT_EQ(pool.n_hot(), 11);
  residency.evict(first, LayerIndex(1), HeadIndex(2));  // again: nothing happens
  EXPECT_EQ(pool.n_hot(), 11);
  residency.check_invariants();
}

TEST(Residency, PutsARecalledBlockBackBetweenItsNeighbours) {
  FramePool pool(18);
  Residency residency(pool, kShape);
  open_with(residency, 8);
  const BlockIndex middle = open_with(residency, 6);
  open_with(residency, 1, 2);
  residency.evict(middle);
  EXPECT_EQ(begins(residency.table(LayerIndex(0), HeadIndex(0))), (std::vector<std::int32_t>{0, 16}));
  ASSERT_TRUE(residency.admit(middle).ok());
  EXPECT_TRUE(residency.is_hot(middle));
  const BlockTable table = residency.table(LayerIndex(0), HeadIndex(0));
  EXPECT_EQ(begins(table), (std::vector<std::int32_t>{0, 8, 16}));
  EXPECT_EQ(table[1].n_tokens, 6);
  residency.check_invariants();
}

TEST(Residency, AdmitsOnlyWhereTheBlockIsNotHot) {
  FramePool pool(6);
  Residency residency(pool, kShape);
  const BlockIndex block = open_with(residency, 8);
  const FrameIndex kept = residency.frame(block, LayerIndex(0), HeadIndex(0));
  residency.evict(block, LayerIndex(1), HeadIndex(0));
  ASSERT_TRUE(residency.admit(block).ok());
  EXPECT_EQ(residency.frame(block, LayerIndex(0), HeadIndex(0)), kept);
  EXPECT_EQ(pool.n_hot(), 6);
  EXPECT_TRUE(residency.admit(block).ok());
  EXPECT_EQ(pool.n_hot(), 6);
}

TEST(Residency, RefusesARecallThatThePoolHasNoFramesForAndChangesNothing) {
  FramePool pool(8);
  Residency residency(pool, kShape);
  const BlockIndex first = open_with(residency, 8);
  residency.evict(first);
  open_with(residency, 8);
  EXPECT_EQ(residency.admit(first).code(), Code::kOutOfBudget);
  EXPECT_FALSE(residency.is_hot(first, LayerIndex(0), HeadIndex(0)));
  EXPECT_EQ(pool.n_hot(), 6);
  residency.check_invariants();
}

TEST(Residency, CutsTheLastBlockOrDropsItWhole) {
  FramePool pool(12);
  Residency residency(pool, kShape);
  open_with(residency, 8);
  open_with(residency, 7, 5);
  residency.truncate_last(2);
  EXPECT_EQ(residency.end(), Position(15));
  EXPECT_EQ(residency.table(LayerIndex(1), HeadIndex(1)).back().n_tokens, 2);
  residency.append(3);
  EXPECT_EQ(residency.end(), Position(18));
  residency.truncate_last(0);
  EXPECT_EQ(residency.n_blocks(), 1);
  EXPECT_EQ(residency.end(), Position(8));
  EXPECT_EQ(pool.n_hot(), 6);
  residency.check_invariants();
}

TEST(Residency, GivesItsFramesBackWhenItDies) {
  FramePool pool(12);
  {
    Residency residency(pool, kShape);
    open_with(residency, 8);
    residency.evict(open_with(residency, 8), LayerIndex(0), HeadIndex(0));
    EXPECT_EQ(pool.n_hot(), 11);
  }
  EXPECT_EQ(pool.n_hot(), 0);
  pool.check_invariants();
}

// The naive twin: what each block is, and where each head has it. Tables are made from it anew.
struct TwinBlock {
  std::int32_t begin = 0;
  std::int32_t n_tokens = 0;
  std::map<std::pair<std::int32_t, std::int32_t>, FrameIndex> frames;  // by (layer, head), where hot
};

class Twin {
 public:
  Twin(FramePool& pool, std::uint64_t seed) : pool_(pool), residency_(pool, kShape), random_(seed) {}

  std::size_t n_hot() const {
    std::size_t n = 0;
    for (const TwinBlock& block : blocks_) n += block.frames.size();
    return n;
  }

  void do_something() {
    switch (random_() % 7) {
      case 0:
      case 1: return open();
      case 2: return append();
      case 3: return evict();
      case 4: return evict_head();
      case 5: return admit();
      default: return truncate();
    }
  }

  void compare() const {
    residency_.check_invariants();
    ASSERT_EQ(static_cast<std::size_t>(residency_.n_blocks()), blocks_.size());
    ASSERT_EQ(static_cast<std::size_t>(residency_.n_hot_frames()), n_hot());
    ASSERT_EQ(residency_.end(), end());
    for (std::int32_t b = 0; b < residency_.n_blocks(); ++b) {
      const TwinBlock& block = blocks_[static_cast<std::size_t>(b)];
      const Span span = {Position(block.begin), Position(block.begin + block.n_tokens)};
      ASSERT_EQ(residency_.span(BlockIndex(b)), span);
      ASSERT_EQ(residency_.is_hot(BlockIndex(b)), is_whole(block));
    }
    for (std::int32_t l = 0; l < kShape.n_layers; ++l) {
      for (std::int32_t h = 0; h < kShape.n_kv_heads; ++h) compare_table(l, h);
    }
  }

 private:
  static bool is_whole(const TwinBlock& block) {
    return block.frames.size() == static_cast<std::size_t>(kShape.frames_per_block());
  }
  Position end() const {
    return blocks_.empty() ? Position(0) : Position(blocks_.back().begin + blocks_.back().n_tokens);
  }
  std::optional<std::size_t> any_block() {
    return blocks_.empty() ? std::nullopt : std::optional<std::size_t>(random_() % blocks_.size());
  }

  void compare_table(std::int32_t layer, std::int32_t head) const {
    const BlockTable table = residency_.table(LayerIndex(layer), HeadIndex(head));
    auto entry = table.begin();
    for (const TwinBlock& block : blocks_) {
      const auto frame = block.frames.find({layer, head});
      if (frame == block.frames.end()) continue;
      ASSERT_NE(entry, table.end());
      ASSERT_EQ(entry->begin, Position(block.begin));
      ASSERT_EQ(entry->n_tokens, block.n_tokens);
      ASSERT_EQ(entry->frame, frame->second);
      ++entry;
    }
    ASSERT_EQ(entry, table.end());
  }

  // Takes over the frames that the residency chose, where the twin has none; old ones must not have changed.
  void learn_frames(std::int32_t b) {
    TwinBlock& block = blocks_[static_cast<std::size_t>(b)];
    for (std::int32_t l = 0; l < kShape.n_layers; ++l) {
      for (std::int32_t h = 0; h < kShape.n_kv_heads; ++h) {
        block.frames.try_emplace({l, h}, residency_.frame(BlockIndex(b), LayerIndex(l), HeadIndex(h)));
      }
    }
  }

  void open() {
    if (!blocks_.empty() && blocks_.back().n_tokens == 0) return;
    const bool fits = pool_.n_free() >= kShape.frames_per_block();
    const Position begin = end() + static_cast<std::int32_t>(random_() % 3);
    const auto opened = residency_.open_block(begin);
    ASSERT_EQ(opened.ok(), fits);
    if (!fits) return;
    blocks_.push_back({.begin = begin.value(), .n_tokens = 0, .frames = {}});
    learn_frames(opened->value());
  }

  void append() {
    if (blocks_.empty() || !is_whole(blocks_.back())) return;
    const std::int32_t room = kShape.block_size - blocks_.back().n_tokens;
    if (room == 0) return;
    const auto n_tokens = 1 + static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(room));
    residency_.append(n_tokens);
    blocks_.back().n_tokens += n_tokens;
  }

  void evict() {
    const auto b = any_block();
    if (!b) return;
    residency_.evict(BlockIndex(static_cast<std::int32_t>(*b)));
    blocks_[*b].frames.clear();
  }

  void evict_head() {
    const auto b = any_block();
    if (!b) return;
    const auto layer = static_cast<std::int32_t>(random_() % 2);
    const auto head = static_cast<std::int32_t>(random_() % 3);
    residency_.evict(BlockIndex(static_cast<std::int32_t>(*b)), LayerIndex(layer), HeadIndex(head));
    blocks_[*b].frames.erase({layer, head});
  }

  void admit() {
    const auto b = any_block();
    if (!b) return;
    const auto n_missing = kShape.frames_per_block() - static_cast<std::int32_t>(blocks_[*b].frames.size());
    const bool fits = pool_.n_free() >= n_missing;
    ASSERT_EQ(residency_.admit(BlockIndex(static_cast<std::int32_t>(*b))).ok(), fits);
    if (fits) learn_frames(static_cast<std::int32_t>(*b));
  }

  void truncate() {
    if (blocks_.empty()) return;
    const auto n_tokens =
        static_cast<std::int32_t>(random_() % (static_cast<std::uint64_t>(blocks_.back().n_tokens) + 1));
    residency_.truncate_last(n_tokens);
    blocks_.back().n_tokens = n_tokens;
    if (n_tokens == 0) blocks_.pop_back();
  }

  FramePool& pool_;
  Residency residency_;
  std::mt19937_64 random_;
  std::vector<TwinBlock> blocks_;
};

TEST(Residency, AgreesWithANaiveTwinWhileTwoSessionsShareOnePool) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    FramePool pool(100);
    pool.shuffle_free(seed);
    Twin first(pool, seed * 2);
    Twin second(pool, seed * 2 + 1);
    for (int i = 0; i < 2000; ++i) {
      (i % 3 == 0 ? second : first).do_something();
      ASSERT_NO_FATAL_FAILURE(first.compare()) << "seed " << seed << " operation " << i;
      ASSERT_NO_FATAL_FAILURE(second.compare()) << "seed " << seed << " operation " << i;
      ASSERT_EQ(static_cast<std::size_t>(pool.n_hot()), first.n_hot() + second.n_hot());
      pool.check_invariants();
    }
  }
}

TEST(ResidencyDeathTest, StopsOnMisuse) {
  FramePool pool(24);
  Residency residency(pool, kShape);
  EXPECT_DEATH(residency.append(1), "no open block");
  const BlockIndex block = open_with(residency, 6);
  EXPECT_DEATH(residency.append(3), "6 \\+ 3 tokens in a block of 8");
  EXPECT_DEATH((void)residency.open_block(Position(5)), "a block at 5 behind 6");
  EXPECT_DEATH(residency.truncate_last(7), "cut to 7 tokens");
  EXPECT_DEATH(residency.evict(BlockIndex(1)), "block 1 of 1");
  residency.evict(block, LayerIndex(0), HeadIndex(1));
  EXPECT_DEATH(residency.append(1), "no open block");
  EXPECT_DEATH((void)residency.frame(block, LayerIndex(0), HeadIndex(1)), "block 0 is not hot in layer 0 head 1");
}

TEST(ResidencyDeathTest, StopsOnABlockBehindAnEmptyOne) {
  FramePool pool(24);
  Residency residency(pool, kShape);
  open_with(residency, 0);
  EXPECT_DEATH((void)residency.open_block(Position(0)), "the last block is still empty");
}

// --- open frames ---

TEST(Residency, HoldsOpenFramesInEveryTableUntilTheBlockIsSealed) {
  FramePool pool(12);
  FramePool open_pool(12);
  Residency residency(pool, kShape, &open_pool);
  const BlockIndex block = open_with(residency, 5);
  EXPECT_FALSE(residency.is_open(block));
  ASSERT_TRUE(residency.hold_open(block).ok());
  ASSERT_TRUE(residency.hold_open(block).ok()) << "again: nothing happens";
  EXPECT_TRUE(residency.is_open(block));
  EXPECT_EQ(open_pool.n_hot(), 6);
  EXPECT_EQ(residency.table(LayerIndex(1), HeadIndex(2))[0].open,
            residency.open_frame(block, LayerIndex(1), HeadIndex(2)));
  residency.check_invariants();
  residency.seal(block);
  EXPECT_FALSE(residency.is_open(block));
  EXPECT_EQ(open_pool.n_hot(), 0);
  EXPECT_EQ(residency.table(LayerIndex(1), HeadIndex(2))[0].open, kNoFrame);
  residency.check_invariants();
}

TEST(Residency, RefusesOpenFramesThatThereAreNotAndChangesNothing) {
  FramePool pool(12);
  FramePool open_pool(11);
  Residency residency(pool, kShape, &open_pool);
  const BlockIndex first = open_with(residency, 8);
  ASSERT_TRUE(residency.hold_open(first).ok());
  const BlockIndex second = open_with(residency, 1);
  EXPECT_EQ(residency.hold_open(second).code(), Code::kOutOfBudget);
  EXPECT_FALSE(residency.is_open(second));
  EXPECT_EQ(open_pool.n_hot(), 6);
  residency.check_invariants();
}

TEST(Residency, GivesOpenFramesBackWithTheBlock) {
  FramePool pool(12);
  FramePool open_pool(12);
  {
    Residency residency(pool, kShape, &open_pool);
    const BlockIndex first = open_with(residency, 8);
    ASSERT_TRUE(residency.hold_open(first).ok());
    residency.evict(first);
    EXPECT_EQ(open_pool.n_hot(), 0);
    ASSERT_TRUE(residency.admit(first).ok());
    EXPECT_FALSE(residency.is_open(first));
    const BlockIndex second = open_with(residency, 4);
    ASSERT_TRUE(residency.hold_open(second).ok());
    residency.truncate_last(2);
    EXPECT_TRUE(residency.is_open(second)) << "its rows are still there";
    residency.check_invariants();
  }
  EXPECT_EQ(open_pool.n_hot(), 0);
}

TEST(Residency, HasNoOpenFramesWhereBlocksHaveOneForm) {
  FramePool pool(6);
  Residency residency(pool, kShape);
  const BlockIndex block = open_with(residency, 5);
  ASSERT_TRUE(residency.hold_open(block).ok());
  EXPECT_FALSE(residency.is_open(block));
  residency.seal(block);
  residency.truncate_last(3);
  residency.check_invariants();
}

}  // namespace
}  // namespace ebb
