// Test support: a sequence's blocks at any positions, hot in any heads, and the tables that attention walks.
//
// Only tests include it: HotSet, which derives tables in earnest, leaves no gaps and needs every row computed.
#pragma once

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "cache/frame_pool.h"
#include "cache/frame_tables.h"
#include "cache/head_set.h"

namespace ebb::toy {

class ToyTables {
 public:
  // Keeps its frames: tests end with their pool.
  ToyTables(FramePool& pool, std::int32_t n_layers, std::int32_t n_kv_heads, std::int32_t block_size)
      : pool_(pool), n_kv_heads_(n_kv_heads), block_size_(block_size), tables_(n_layers, n_kv_heads) {}

  [[nodiscard]] const FrameTables& tables() const { return tables_; }
  [[nodiscard]] BlockTable table(LayerIndex layer, HeadIndex head) const { return tables_.table(layer, head); }
  [[nodiscard]] Position end() const { return tables_.end(); }
  [[nodiscard]] std::int32_t n_blocks() const { return static_cast<std::int32_t>(blocks_.size()); }
  [[nodiscard]] Span span(BlockIndex block) const {
    const Block& b = blocks_[block.index()];
    return {b.begin, b.begin + b.n_tokens};
  }
  // Rows that the last block has left.
  [[nodiscard]] std::int32_t room() const { return blocks_.empty() ? 0 : block_size_ - blocks_.back().n_tokens; }
  [[nodiscard]] FrameIndex frame(BlockIndex block, LayerIndex layer, HeadIndex head) const {
    return blocks_[block.index()].frames[number(layer, head)];
  }
  [[nodiscard]] bool is_hot(BlockIndex block, LayerIndex layer, HeadIndex head) const {
    return frame(block, layer, head) != kNoFrame;
  }

  // Hot in every head, without a token, at the end or behind a gap.
  void open_block(Position begin) {
    EBB_CHECK(begin >= end(), "a block at {} behind {}", begin.value(), end().value());
    blocks_.push_back({.begin = begin, .frames = std::vector<FrameIndex>(tables_.n_heads())});
    EBB_CHECK(pool_.acquire(blocks_.back().frames).ok(), "the pool is too small");
    derive();
  }
  void append(std::int32_t n_tokens) {
    EBB_CHECK(n_tokens <= room(), "{} tokens, room for {}", n_tokens, room());
    blocks_.back().n_tokens += n_tokens;
    derive();
  }
  void evict(BlockIndex block) { evict(block, HeadSet::all(tables_.n_heads())); }
  void evict(BlockIndex block, LayerIndex layer, HeadIndex head) {
    HeadSet heads(tables_.n_heads());
    heads.add(number(layer, head));
    evict(block, heads);
  }
  // In every head again, in other frames.
  void admit(BlockIndex block) {
    for (FrameIndex& frame : blocks_[block.index()].frames) {
      if (frame == kNoFrame) EBB_CHECK(pool_.acquire({&frame, 1}).ok(), "the pool is too small");
    }
    derive();
  }

 private:
  struct Block {
    Position begin;
    std::int32_t n_tokens = 0;
    std::vector<FrameIndex> frames;  // [layer][KV head]; kNoFrame where it is not hot
  };

  [[nodiscard]] std::size_t number(LayerIndex layer, HeadIndex head) const {
    return layer.index() * static_cast<std::size_t>(n_kv_heads_) + head.index();
  }
  void evict(BlockIndex block, const HeadSet& heads) {
    heads.for_each([&](std::size_t head) {
      FrameIndex& frame = blocks_[block.index()].frames[head];
      if (frame != kNoFrame) pool_.release({&frame, 1});
      frame = kNoFrame;
    });
    derive();
  }
  void derive() {
    for (std::size_t head = 0; head < tables_.n_heads(); ++head) {
      tables_.entries(head).clear();
      for (const Block& b : blocks_) {
        if (b.frames[head] == kNoFrame) continue;
        tables_.entries(head).push_back({.frame = b.frames[head], .begin = b.begin, .n_tokens = b.n_tokens});
      }
    }
    if (!blocks_.empty()) tables_.set_end(blocks_.back().begin + blocks_.back().n_tokens);
  }

  FramePool& pool_;
  std::int32_t n_kv_heads_;
  std::int32_t block_size_;
  std::vector<Block> blocks_;
  FrameTables tables_;
};

}  // namespace ebb::toy
