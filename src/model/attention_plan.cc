#include "model/attention_plan.h"

#include <algorithm>

#include "model/attention_kernel.h"

namespace ebb {
namespace {

// Sums of segments may take this much; tiles of more are not split. Decode of 64 heads of 64 needs 2 MB at 128K tokens.
constexpr std::size_t kMaxSlotBytes = std::size_t{16} << 20;

constexpr std::size_t to_size(std::int32_t n) { return static_cast<std::size_t>(n); }
constexpr std::int32_t to_int(std::size_t n) { return static_cast<std::int32_t>(n); }

constexpr std::int32_t round_up(std::int32_t n, std::int32_t step) { return (n + step - 1) / step * step; }

// At least as many as any tile over the table meets. Holes leave segments empty, so entries bound them too.
std::int32_t bound_segments(BlockTable table) {
  if (table.empty()) return 1;
  return std::min(to_int(table.size()), table.back().segment() - table.front().segment() + 1);
}

// Without block sums.
std::size_t count_thread_floats(const AttentionShape& shape, const AttentionPlan& plan) {
  const FrameLayout& layout = shape.layout;
  const std::size_t unpacked = to_size(layout.head_dim_k) * to_size(layout.key_stride()) +
                               to_size(layout.block_size) * to_size(plan.value_stride);
  const std::size_t queries = to_size(plan.row_capacity) * to_size(layout.head_dim_k + 1);
  return 2 * plan.slot_floats + unpacked + queries;
}

}  // namespace

std::size_t AttentionPlan::bytes(std::int32_t n_threads) const {
  return (to_size(n_threads) * thread_floats + n_slots * slot_floats + shared_block_sums) * sizeof(float);
}

AttentionPlan make_plan(const AttentionShape& shape, const AttentionStep& step, LayerIndex layer,
                        std::int32_t n_threads) {
  AttentionPlan plan;
  plan.group = shape.n_heads / shape.n_kv_heads;
  std::int32_t most_rows = 1;
  for (const SequenceRows& rows : step.sequences) most_rows = std::max(most_rows, rows.n_rows);
  plan.tile_tokens = std::clamp(kTileRows / plan.group, 1, most_rows);
  // A kernel set may pad the rows of a tile by less than one step.
  plan.row_capacity = round_up(plan.tile_tokens * plan.group + kMaxStepRows, kKeyLanes);
  plan.value_stride = round_up(shape.layout.head_dim_v, kKeyLanes);
  plan.slot_floats = to_size(plan.row_capacity) * to_size(plan.value_stride + 2);

  std::size_t max_entries = 0;
  std::size_t n_tile_entries = 0;
  for (std::size_t s = 0; s < step.sequences.size(); ++s) {
    const std::int32_t n_tiles = (step.sequences[s].n_rows + plan.tile_tokens - 1) / plan.tile_tokens;
    plan.n_tiles += n_tiles * shape.n_kv_heads;
    for (std::int32_t h = 0; h < shape.n_kv_heads; ++h) {
      const BlockTable table = step.table(s, layer, HeadIndex(h));
      max_entries = std::max(max_entries, table.size());
      n_tile_entries += to_size(n_tiles) * table.size();
      plan.n_slots += to_size(n_tiles) * to_size(bound_segments(table));
    }
  }
  plan.split =
      plan.n_tiles < kTilesPerThread * n_threads && plan.n_slots * plan.slot_floats * sizeof(float) <= kMaxSlotBytes;
  if (!plan.split) plan.n_slots = 0;
  const bool mass = step.mass_stride > 0;
  if (mass && plan.split) plan.shared_block_sums = 2 * to_size(plan.row_capacity) * n_tile_entries;
  plan.thread_floats = count_thread_floats(shape, plan);
  if (mass && !plan.split) plan.thread_floats += 2 * to_size(plan.row_capacity) * max_entries;
  return plan;
}

std::int32_t find_segment_end(const AttentionTile& tile, std::int32_t entry) {
  const std::int32_t segment = tile.table[to_size(entry)].segment();
  while (entry < tile.entry_end && tile.table[to_size(entry)].segment() == segment) ++entry;
  return entry;
}

bool TileCursor::seek(std::int32_t item) {
  while (item >= tile_.first_item + tile_.n_items) {
    if (!next()) return false;
  }
  return true;
}

// Sequence by sequence, head by head, the last (longest) tile of each first, so that the work ends with small pieces.
bool TileCursor::next() {
  while (n_tiles_left_ == 0) {
    if (next_sequence_ == step_.sequences.size()) return false;
    tile_.sequence = next_sequence_;
    tile_.head = HeadIndex(next_head_);
    n_tiles_left_ = (step_.sequences[next_sequence_].n_rows + plan_.tile_tokens - 1) / plan_.tile_tokens;
    if (++next_head_ == shape_.n_kv_heads) {
      next_head_ = 0;
      ++next_sequence_;
    }
  }
  --n_tiles_left_;
  tile_.block_sums_begin += 2 * to_size(plan_.row_capacity) * to_size(tile_.entry_end - tile_.entry_begin);
  tile_.first_item += tile_.n_items;
  ++tile_.index;
  describe();
  return true;
}

void TileCursor::describe() {
  const SequenceRows& rows = step_.sequences[tile_.sequence];
  tile_.token_begin = n_tiles_left_ * plan_.tile_tokens;
  tile_.n_tokens = std::min(plan_.tile_tokens, rows.n_rows - tile_.token_begin);
  tile_.table = step_.table(tile_.sequence, layer_, tile_.head);

  const Position first = rows.first + tile_.token_begin;
  const Position last = first + (tile_.n_tokens - 1);
  const auto begin = tile_.table.begin();
  const auto end = tile_.table.end();
  const auto visible_end =
      std::partition_point(begin, end, [last](const TableEntry& entry) { return entry.begin <= last; });
  auto visible_begin = begin;
  if (shape_.window > 0) {
    const Position oldest = first - (shape_.window - 1);
    visible_begin = std::partition_point(begin, visible_end,
                                         [oldest](const TableEntry& entry) { return entry.span().end <= oldest; });
  }
  tile_.entry_begin = static_cast<std::int32_t>(visible_begin - begin);
  tile_.entry_end = static_cast<std::int32_t>(visible_end - begin);

  tile_.n_items = 1;
  if (!plan_.split) return;
  tile_.n_items = 0;
  for (std::int32_t e = tile_.entry_begin; e < tile_.entry_end; e = find_segment_end(tile_, e)) ++tile_.n_items;
  tile_.n_items = std::max(tile_.n_items, 1);
}

}  // namespace ebb
