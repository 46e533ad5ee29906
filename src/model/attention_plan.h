// How the attention of one layer is cut into pieces of work, and the scratch memory the pieces need.
//
// A tile is some query tokens of one sequence, or one of each member of a cohort, with all query heads of one KV head.
// One item of work is a tile, or, when tiles are too few to keep the threads busy (decode), one split of a tile; the
// last split to finish merges the tile. Which way is chosen, and who takes which item, changes no bit of the result.
//
// A tile of a cohort goes split by split: first the blocks that all members have in common, with the rows of all, then
// for each member its own blocks, which go on from its rows' sums:
//
//   split           0                              1
//   member 0    | shared | shared | own    |    own   | own   |
//   member 1    | shared | shared | own    | own      |
//
// Scratch, in floats:
//   [n_threads][thread_floats]   packed queries, sums of a split, of the tile and of one member, an unpacked block;
//                                when mass is asked for, a member's block sums of one block and, when tiles are not
//                                split, the tile's block sums
//   [n_split_sums][split_sum_floats]       when split: the sums of each split, one of each item
//   [shared_block_sums]          when split and mass is asked for: block sums of all tiles
//
// Block sums of a tile are [seen entry][2][row_capacity]: what the kernels report as block_l and block_m. Where slices are
// asked for, [row_capacity][slots] follow in each entry: what they report as block_p. Members' entries are counted each from
// its first seen one.
//
// Thread rule: values; each thread walks with its own TileCursor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "model/attention.h"
#include "model/attention_cohorts.h"

namespace ebb {

// More rows share an unpacked block; fewer leave more tiles to share among threads and stay longer in the L1 cache.
inline constexpr std::int32_t kTileRows = 64;
// The most that a thread keeps of p for slices; tiles have fewer rows where it would be more. Less: long sessions' blocks are
// unpacked more often; more: memory of each thread.
inline constexpr std::size_t kMostSlotBytes = std::size_t{16} << 20;
// With fewer tiles per thread than this, tiles are split: one slow thread then holds up little.
inline constexpr std::int32_t kTilesPerThread = 8;
// Larger cohorts than leave this many tiles to a thread would keep some threads waiting for others.
inline constexpr std::int32_t kCohortTilesPerThread = 4;

// The most members of a cohort.
[[nodiscard]] std::int32_t bound_cohort(const AttentionShape& shape, const AttentionStep& step, std::int32_t n_threads);

struct AttentionPlan {
  std::int32_t group = 0;         // query heads of one KV head
  std::int32_t tile_tokens = 0;   // query tokens of a tile of one sequence, at most
  std::int32_t row_capacity = 0;  // rows of a tile, padding included, at most
  std::int32_t value_stride = 0;
  std::int32_t n_tiles = 0;
  bool split = false;
  std::size_t thread_floats = 0;
  std::size_t n_split_sums = 0;
  std::size_t split_sum_floats = 0;
  std::size_t shared_block_sums = 0;
  std::size_t block_sum_floats = 0;  // of one entry of a tile
  std::int32_t slot_stride = 0;      // of a row's p; 0 where nobody asks for slices

  [[nodiscard]] std::size_t bytes(std::int32_t n_threads) const;
};

[[nodiscard]] AttentionPlan make_plan(const AttentionShape& shape, const AttentionStep& step, const Cohorts& cohorts,
                                      LayerIndex layer, std::int32_t n_threads);

// One sequence of a tile.
struct TileMember {
  std::size_t sequence = 0;
  BlockTable table;              // the whole table
  std::int32_t entry_begin = 0;  // the part that some query of the tile sees
  std::int32_t entry_end = 0;

  [[nodiscard]] BlockTable seen() const {
    return table.subspan(static_cast<std::size_t>(entry_begin), static_cast<std::size_t>(entry_end - entry_begin));
  }
};

struct AttentionTile {
  std::vector<TileMember> members;
  HeadIndex head;
  std::int32_t token_begin = 0;  // within the sequence's rows of this step
  std::int32_t n_tokens = 0;     // of each member; 1 where there are several
  std::int32_t n_shared = 0;     // leading seen entries that several members have in common
  std::int32_t index = -1;
  std::int32_t first_item = 0;
  std::int32_t n_items = 0;
  std::size_t block_sums_begin = 0;  // in shared_block_sums

  // Query i is a token of a member: the tokens of one, or one of each.
  [[nodiscard]] std::int32_t n_queries() const { return static_cast<std::int32_t>(members.size()) * n_tokens; }
  [[nodiscard]] const TileMember& member(std::int32_t query) const {
    return members[static_cast<std::size_t>(query / n_tokens)];
  }
  [[nodiscard]] std::int32_t token(std::int32_t query) const { return token_begin + query % n_tokens; }
  // How many entries the member that sees most sees.
  [[nodiscard]] std::int32_t n_seen() const;
};

// A range of the entries of TileMember::seen().
struct EntryRange {
  std::int32_t begin = 0;
  std::int32_t end = 0;
};
[[nodiscard]] EntryRange find_entries(const TileMember& member, std::int32_t split);

inline constexpr std::int32_t kNoSplit = -1;
// The first split behind `split` in which a query of the tile sees anything, or kNoSplit. Behind kNoSplit: the first of
// all.
[[nodiscard]] std::int32_t find_split_behind(const AttentionTile& tile, std::int32_t split);

// Walks the tiles of a plan forward.
class TileCursor {
 public:
  TileCursor(const AttentionShape& shape, const AttentionStep& step, const Cohorts& cohorts, LayerIndex layer,
             const AttentionPlan& plan)
      : shape_(shape), step_(step), cohorts_(cohorts), layer_(layer), plan_(plan) {}

  // Moves on to the tile of `item`; false when there are no more items. Items asked for must ascend.
  [[nodiscard]] bool seek(std::int32_t item);
  [[nodiscard]] const AttentionTile& tile() const { return tile_; }

 private:
  bool next();
  void describe();
  void add_member(std::size_t sequence);
  [[nodiscard]] std::int32_t count_shared() const;

  const AttentionShape& shape_;
  const AttentionStep& step_;
  const Cohorts& cohorts_;
  LayerIndex layer_;
  const AttentionPlan& plan_;
  AttentionTile tile_;
  std::int32_t n_tiles_left_ = 0;  // of this cohort and head
  std::int32_t next_head_ = 0;
  std::size_t next_cohort_ = 0;
  std::size_t cohort_ = 0;
};

}  // namespace ebb
