// How the attention of one layer is cut into pieces of work, and the scratch memory the pieces need.
//
// A tile is some query tokens of one sequence with all query heads of one KV head. One item of work is a tile, or, when
// tiles are too few to keep the threads busy (decode), one segment of a tile; the last segment to finish merges the
// tile. Which way is chosen, and who takes which item, changes no bit of the result.
//
// Scratch, in floats:
//   [n_threads][thread_floats]   packed queries, sums of a segment and of the tile, an unpacked block; when mass is
//                                asked for and tiles are not split, the tile's block sums
//   [n_slots][slot_floats]       when split: the sums of each segment, slot = item
//   [shared_block_sums]          when split and mass is asked for: block sums of all tiles
//
// Block sums of a tile are [entry][2][row_capacity]: what the kernels report as block_l and block_m.
//
// Thread rule: values; each thread walks with its own TileCursor.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "model/attention.h"

namespace ebb {

// More rows share an unpacked block; fewer leave more tiles to share among threads and stay longer in the L1 cache.
inline constexpr std::int32_t kTileRows = 64;
// With fewer tiles per thread than this, tiles are split: one slow thread then holds up little.
inline constexpr std::int32_t kTilesPerThread = 8;

struct AttentionPlan {
  std::int32_t group = 0;         // query heads of one KV head
  std::int32_t tile_tokens = 0;   // query tokens of a tile, at most
  std::int32_t row_capacity = 0;  // rows of a tile, padding included, at most
  std::int32_t value_stride = 0;
  std::int32_t n_tiles = 0;
  bool split = false;
  std::size_t thread_floats = 0;
  std::size_t n_slots = 0;
  std::size_t slot_floats = 0;
  std::size_t shared_block_sums = 0;

  [[nodiscard]] std::size_t bytes(std::int32_t n_threads) const;
};

[[nodiscard]] AttentionPlan make_plan(const AttentionShape& shape, const AttentionStep& step, LayerIndex layer,
                                      std::int32_t n_threads);

struct AttentionTile {
  std::size_t sequence = 0;
  HeadIndex head;
  std::int32_t token_begin = 0;  // within the sequence's rows of this step
  std::int32_t n_tokens = 0;
  BlockTable table;              // the whole table
  std::int32_t entry_begin = 0;  // the part that some query of the tile sees
  std::int32_t entry_end = 0;
  std::int32_t index = -1;
  std::int32_t first_item = 0;
  std::int32_t n_items = 0;
  std::size_t block_sums_begin = 0;  // in shared_block_sums
};

// First entry after `entry` that lies in another segment, or entry_end.
[[nodiscard]] std::int32_t find_segment_end(const AttentionTile& tile, std::int32_t entry);

// Walks the tiles of a plan forward.
class TileCursor {
 public:
  TileCursor(const AttentionShape& shape, const AttentionStep& step, LayerIndex layer, const AttentionPlan& plan)
      : shape_(shape), step_(step), layer_(layer), plan_(plan) {}

  // Moves on to the tile of `item`; false when there are no more items. Items asked for must ascend.
  [[nodiscard]] bool seek(std::int32_t item);
  [[nodiscard]] const AttentionTile& tile() const { return tile_; }

 private:
  bool next();
  void describe();

  const AttentionShape& shape_;
  const AttentionStep& step_;
  LayerIndex layer_;
  const AttentionPlan& plan_;
  AttentionTile tile_;
  std::int32_t n_tiles_left_ = 0;  // of this sequence and head
  std::int32_t next_head_ = 0;
  std::size_t next_sequence_ = 0;
};

}  // namespace ebb
