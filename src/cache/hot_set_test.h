// Test support: one small pool, what its sessions share, and hot sets over it; the few steps that most tests take.
#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "cache/hot_set.h"

namespace ebb {

class HotSetTest : public testing::Test {
 protected:
  static constexpr BlockShape kShape = {.n_layers = 2, .n_kv_heads = 3, .block_size = 8};
  static constexpr std::int32_t kPerBlock = 6;

  // A hot set over the pool; `shares`: with all others of this test that do.
  std::unique_ptr<HotSet> make(const BlockShape& shape = kShape, bool shares = true, bool seals = false) {
    return std::make_unique<HotSet>(
        HotSet::Sources{
            .pool = pool_, .open_pool = seals ? &open_pool_ : nullptr, .shared = shares ? &shared_ : nullptr},
        shape);
  }

  // What stands at positions from `begin` on; `text` tells apart what sessions say.
  static std::vector<Token> tokens(Position begin, std::int32_t n_tokens, std::int32_t text = 0) {
    std::vector<Token> tokens;
    for (std::int32_t i = 0; i < n_tokens; ++i) tokens.emplace_back(1000 * text + begin.value() + i);
    return tokens;
  }
  // A step: rows, tokens in them, and the eye behind them.
  static void say(HotSet& hot, std::int32_t n_tokens, std::int32_t text = 0) {
    ASSERT_TRUE(hot.open(n_tokens).ok());
    hot.append(tokens(hot.end(), n_tokens, text));
    hot.look_from(hot.end());
    hot.check_invariants();
  }
  // Its bytes are known and others may use them.
  static void publish(HotSet& hot, BlockIndex block, std::uint64_t body = 1) {
    hot.set_body(block, {.low = body}, {});
    hot.publish(block);
    hot.check_invariants();
  }
  static HeadSet heads(std::initializer_list<std::size_t> of, const BlockShape& shape = kShape) {
    HeadSet heads(shape.n_heads());
    for (const std::size_t head : of) heads.add(head);
    return heads;
  }
  static std::vector<std::int32_t> begins(const HotSet& hot, std::size_t head) {
    std::vector<std::int32_t> begins;
    for (const TableEntry& entry : hot.tables().entries(head)) begins.push_back(entry.begin.value());
    return begins;
  }
  static std::vector<BlockIndex> indices(std::initializer_list<std::int32_t> of) {
    std::vector<BlockIndex> blocks;
    for (const std::int32_t block : of) blocks.emplace_back(block);
    return blocks;
  }

  FramePool pool_{200};
  FramePool open_pool_{2 * kPerBlock};
  HotBlocks shared_;
};

}  // namespace ebb
