// Residency: for each (layer, KV head) of one session, which blocks are hot and in which frame.
//
// It keeps the block tables that attention walks, takes frames from the pool and gives them back. It does not know what
// a block means, where evicted bytes go, or why. Blocks are opened at rising positions, never overlap, and keep their
// positions for good.
//
//   open_block   -> hot, empty, frames of all heads           append -> n_tokens grows up to block_size
//   add_cold_block -> not hot, with its tokens
//   evict        hot -> not hot, frames go back to the pool    admit  -> not hot -> hot in new frames (bytes to be filled)
//   truncate     the last block loses its last tokens, or goes as if never opened (an abandoned prefill)
//   hold_open    of a layout that seals: open frames for a block that is not full once a step is over
//   seal         gives them back: the block's rows are in its frames now, in their sealed form
//   publish      others may use the frames, which no longer change      share -> hot in the frames that another published
//   make_own     before frames that were published or shared are written
//
// Thread rule: one thread at a time (the engine's).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/span.h"
#include "base/status.h"
#include "cache/block_table.h"
#include "cache/frame_pool.h"
#include "cache/hot_blocks.h"

namespace ebb {

class Residency {
 public:
  struct Shape {
    std::int32_t n_layers = 0;
    std::int32_t n_kv_heads = 0;
    std::int32_t block_size = 0;

    [[nodiscard]] std::int32_t frames_per_block() const { return n_layers * n_kv_heads; }
  };

  // What is given must outlive the residency, which gives all its frames back when it dies. `open_pool`: open frames, of a
  // layout that seals; null of any other. `hot`: what residencies of the pool share; null: this one shares nothing.
  Residency(FramePool& pool, const Shape& shape, FramePool* open_pool = nullptr, HotBlocks* hot = nullptr);
  ~Residency();
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::int32_t n_blocks() const { return static_cast<std::int32_t>(blocks_.size()); }
  // Hot frames of this session.
  [[nodiscard]] std::int32_t n_hot_frames() const { return n_hot_frames_; }
  [[nodiscard]] Span span(BlockIndex block) const;
  // Hot in every layer and head; a block may be hot in some heads only.
  [[nodiscard]] bool is_hot(BlockIndex block) const;
  [[nodiscard]] bool is_hot(BlockIndex block, LayerIndex layer, HeadIndex head) const;
  // Only where hot.
  [[nodiscard]] FrameIndex frame(BlockIndex block, LayerIndex layer, HeadIndex head) const;
  // Its rows lie in open frames.
  [[nodiscard]] bool is_open(BlockIndex block) const;
  // Only where open.
  [[nodiscard]] FrameIndex open_frame(BlockIndex block, LayerIndex layer, HeadIndex head) const;
  // Other residencies use frames of it too, which therefore stay in use when this one evicts it.
  [[nodiscard]] bool is_shared(BlockIndex block) const;
  // Under which its frames are promised to others, or were taken from them.
  [[nodiscard]] const std::optional<Hash128>& hot_name(BlockIndex block) const { return get(block).hot_name; }
  // Position after the last block's last token.
  [[nodiscard]] Position end() const;
  // Stays valid until the next change of this residency.
  [[nodiscard]] BlockTable table(LayerIndex layer, HeadIndex head) const;

  // `begin` must not lie before end(). kOutOfBudget when the pool has not enough free frames; nothing changes then.
  Result<BlockIndex> open_block(Position begin);
  // A block behind end() that is not hot, with 1 to block_size tokens: of a session that goes on from its cold store.
  BlockIndex add_cold_block(Position begin, std::int32_t n_tokens);
  // Tokens go to the last block, which must be hot and have room.
  void append(std::int32_t n_tokens);
  void evict(BlockIndex block);
  void evict(BlockIndex block, LayerIndex layer, HeadIndex head);
  // Frames for every head in which the block is not hot. The caller fills them before anything is computed.
  Status admit(BlockIndex block);
  // Open frames for a block that is hot in every head, if it has none; kOutOfBudget when there are too few. Nothing
  // happens where blocks have one form.
  Status hold_open(BlockIndex block);
  void seal(BlockIndex block);
  // Lists a full block, hot in every head and under no name, for share(). The name must not be listed.
  void publish(BlockIndex block, const Hash128& name, std::span<const Token> tokens, Position anchor);
  // The full block is hot in the frames that are listed under `name`; what it had goes back.
  void share(BlockIndex block, const Hash128& name);
  // Frames that nobody else uses or may come to use; where they are others than before, what they hold is the caller's
  // to fill. Nothing happens to a block under no name. kOutOfBudget when the pool has too few; nothing changes then.
  Status make_own(BlockIndex block);
  // Cuts the last block to n_tokens, or drops it whole when none are left. What is sealed has lost its rows and cannot
  // be cut: evict it first.
  void truncate_last(std::int32_t n_tokens);

  void check_invariants() const;

 private:
  struct Block {
    Position begin;
    std::int32_t n_tokens = 0;
    std::int32_t n_hot = 0;          // of its frames
    std::vector<FrameIndex> frames;  // [layer][head]; kNoFrame where not hot
    std::vector<FrameIndex> open;    // the same of open frames; empty when there are none
    std::optional<Hash128> hot_name;
  };

  [[nodiscard]] std::size_t slot(LayerIndex layer, HeadIndex head) const;
  [[nodiscard]] Block& get(BlockIndex block);
  [[nodiscard]] const Block& get(BlockIndex block) const;
  [[nodiscard]] TableEntry& find_entry(std::size_t slot, Position begin);
  void insert_entry(std::size_t slot, const Block& block);
  void remove_entry(std::size_t slot, Position begin);
  void release_frame(const Block& block, std::size_t slot);

  FramePool& pool_;
  FramePool* open_pool_;
  HotBlocks* hot_;
  Shape shape_;
  std::vector<Block> blocks_;
  std::vector<std::vector<TableEntry>> tables_;  // [layer][head], each in position order
  std::int32_t n_hot_frames_ = 0;
};

}  // namespace ebb
