#include "model/attention_plan.h"

#include <algorithm>

#include "base/to_size.h"
#include "model/attention_kernel.h"

namespace ebb {
namespace {

// Sums of splits may take this much; tiles of more are not split. Decode of 64 heads of 64 needs 2 MB at 128K tokens.
constexpr std::size_t kMaxSplitSumBytes = std::size_t{16} << 20;

constexpr std::int32_t to_int(std::size_t n) { return static_cast<std::int32_t>(n); }

constexpr std::int32_t round_up(std::int32_t n, std::int32_t step) { return (n + step - 1) / step * step; }

std::int32_t count_tiles(const AttentionStep& step, std::span<const std::size_t> cohort, std::int32_t tile_tokens) {
  return (step.sequences[cohort.front()].n_rows + tile_tokens - 1) / tile_tokens;
}

// What the tiles of a cohort may see in one head.
struct CohortReach {
  std::size_t n_entries = 0;  // of the longest table
  std::size_t n_splits = 1;
};

CohortReach find_reach(const AttentionStep& step, std::span<const std::size_t> cohort, LayerIndex layer,
                       HeadIndex head) {
  CohortReach reach;
  std::size_t n_entries = 0;
  std::int32_t first = INT32_MAX;
  std::int32_t last = -1;
  for (const std::size_t s : cohort) {
    const BlockTable table = step.table(s, layer, head);
    if (table.empty()) continue;
    reach.n_entries = std::max(reach.n_entries, table.size());
    n_entries += table.size();
    first = std::min(first, table.front().split());
    last = std::max(last, table.back().split());
  }
  // Holes leave splits empty, so entries bound them too.
  if (n_entries > 0) reach.n_splits = std::min(n_entries, to_size(last - first + 1));
  return reach;
}

// The rows of a tile, so that their p of all slots of a table fit a thread's room.
std::int32_t bound_rows(const AttentionStep& step, LayerIndex layer, std::int32_t slot_stride) {
  if (slot_stride == 0) return kTileRows;
  std::size_t most_entries = 1;
  for (std::size_t s = 0; s < step.sequences.size(); ++s) {
    for (std::int32_t h = 0; h < step.n_kv_heads; ++h) {
      most_entries = std::max(most_entries, step.table(s, layer, HeadIndex(h)).size());
    }
  }
  const std::size_t n_rows = kMostSlotBytes / (most_entries * to_size(slot_stride) * sizeof(float));
  return to_int(std::min(n_rows, to_size(kTileRows)));
}

// Without block sums.
std::size_t count_thread_floats(const AttentionShape& shape, const AttentionPlan& plan) {
  const FrameLayout& layout = shape.layout;
  const std::size_t unpacked = to_size(layout.head_dim_k) * to_size(layout.key_stride()) +
                               to_size(layout.block_size) * to_size(plan.value_stride);
  const std::size_t queries = to_size(plan.row_capacity) * to_size(layout.head_dim_k + 1);
  return 3 * plan.split_sum_floats + unpacked + queries;
}

}  // namespace

std::size_t AttentionPlan::bytes(std::int32_t n_threads) const {
  return (to_size(n_threads) * thread_floats + n_split_sums * split_sum_floats + shared_block_sums) * sizeof(float);
}

std::int32_t bound_cohort(const AttentionShape& shape, const AttentionStep& step, std::int32_t n_threads) {
  const auto n_single = to_int(static_cast<std::size_t>(
      std::ranges::count_if(step.sequences, [](const SequenceRows& rows) { return rows.n_rows == 1; })));
  const std::int32_t group = shape.n_heads / shape.n_kv_heads;
  return std::clamp(n_single * shape.n_kv_heads / (kCohortTilesPerThread * n_threads), 1,
                    std::max(kTileRows / group, 1));
}

AttentionPlan make_plan(const AttentionShape& shape, const AttentionStep& step, const Cohorts& cohorts,
                        LayerIndex layer, std::int32_t n_threads) {
  AttentionPlan plan;
  plan.group = shape.n_heads / shape.n_kv_heads;
  std::int32_t most_rows = 1;
  for (const SequenceRows& rows : step.sequences) most_rows = std::max(most_rows, rows.n_rows);
  if (step.asks_slots()) plan.slot_stride = shape.layout.key_stride();
  plan.tile_tokens = std::clamp(bound_rows(step, layer, plan.slot_stride) / plan.group, 1, most_rows);

  std::size_t most_members = 1;
  std::size_t max_entries = 0;
  std::size_t n_tile_entries = 0;
  for (std::size_t c = 0; c < cohorts.size(); ++c) {
    most_members = std::max(most_members, cohorts[c].size());
    const std::int32_t n_tiles = count_tiles(step, cohorts[c], plan.tile_tokens);
    plan.n_tiles += n_tiles * shape.n_kv_heads;
    for (std::int32_t h = 0; h < shape.n_kv_heads; ++h) {
      const CohortReach reach = find_reach(step, cohorts[c], layer, HeadIndex(h));
      max_entries = std::max(max_entries, reach.n_entries);
      n_tile_entries += to_size(n_tiles) * reach.n_entries;
      plan.n_split_sums += to_size(n_tiles) * reach.n_splits;
    }
  }
  const std::int32_t n_queries = std::max(plan.tile_tokens, to_int(most_members));
  // A kernel set may pad the rows of a tile by less than one step.
  plan.row_capacity = round_up(n_queries * plan.group + kMaxStepRows, kVectorKeys);
  plan.value_stride = round_up(shape.layout.head_dim_v, kVectorKeys);
  plan.split_sum_floats = to_size(plan.row_capacity) * to_size(plan.value_stride + 2);
  plan.split = plan.n_tiles < kTilesPerThread * n_threads &&
               plan.n_split_sums * plan.split_sum_floats * sizeof(float) <= kMaxSplitSumBytes;
  if (!plan.split) plan.n_split_sums = 0;
  plan.thread_floats = count_thread_floats(shape, plan);
  if (step.mass_stride > 0) {
    plan.block_sum_floats = to_size(plan.row_capacity) * to_size(2 + plan.slot_stride);
    plan.thread_floats += plan.block_sum_floats * (plan.split ? 1 : max_entries + 1);
    if (plan.split) plan.shared_block_sums = plan.block_sum_floats * n_tile_entries;
  }
  return plan;
}

std::int32_t AttentionTile::n_seen() const {
  std::int32_t most = 0;
  for (const TileMember& member : members) most = std::max(most, member.entry_end - member.entry_begin);
  return most;
}

EntryRange find_entries(const TileMember& member, std::int32_t split) {
  const BlockTable seen = member.seen();
  const auto entries = std::ranges::equal_range(seen, split, {}, &TableEntry::split);
  return {to_int(static_cast<std::size_t>(entries.begin() - seen.begin())),
          to_int(static_cast<std::size_t>(entries.end() - seen.begin()))};
}

std::int32_t find_split_behind(const AttentionTile& tile, std::int32_t split) {
  std::int32_t nearest = kNoSplit;
  for (const TileMember& member : tile.members) {
    const BlockTable seen = member.seen();
    const auto entry = std::ranges::partition_point(seen, [split](const TableEntry& e) { return e.split() <= split; });
    if (entry != seen.end() && (nearest == kNoSplit || entry->split() < nearest)) nearest = entry->split();
  }
  return nearest;
}

bool TileCursor::seek(std::int32_t item) {
  while (item >= tile_.first_item + tile_.n_items) {
    if (!next()) return false;
  }
  return true;
}

// Cohort by cohort, head by head, the last (longest) tile of each first, so that the work ends with small pieces.
bool TileCursor::next() {
  while (n_tiles_left_ == 0) {
    if (next_cohort_ == cohorts_.size()) return false;
    cohort_ = next_cohort_;
    tile_.head = HeadIndex(next_head_);
    n_tiles_left_ = count_tiles(step_, cohorts_[cohort_], plan_.tile_tokens);
    if (++next_head_ == shape_.n_kv_heads) {
      next_head_ = 0;
      ++next_cohort_;
    }
  }
  --n_tiles_left_;
  tile_.block_sums_begin += plan_.block_sum_floats * to_size(tile_.n_seen());
  tile_.first_item += tile_.n_items;
  ++tile_.index;
  describe();
  return true;
}

void TileCursor::describe() {
  const std::span<const std::size_t> cohort = cohorts_[cohort_];
  tile_.token_begin = n_tiles_left_ * plan_.tile_tokens;
  tile_.n_tokens = std::min(plan_.tile_tokens, step_.sequences[cohort.front()].n_rows - tile_.token_begin);
  tile_.members.clear();
  for (const std::size_t sequence : cohort) add_member(sequence);
  tile_.n_shared = count_shared();

  tile_.n_items = 1;
  if (!plan_.split) return;
  std::int32_t split = find_split_behind(tile_, kNoSplit);
  while (split != kNoSplit && (split = find_split_behind(tile_, split)) != kNoSplit) ++tile_.n_items;
}

void TileCursor::add_member(std::size_t sequence) {
  const BlockTable table = step_.table(sequence, layer_, tile_.head);
  const Position first = step_.sequences[sequence].first + tile_.token_begin;
  const Position last = first + (tile_.n_tokens - 1);
  const auto begin = table.begin();
  const auto visible_end =
      std::partition_point(begin, table.end(), [last](const TableEntry& entry) { return entry.begin <= last; });
  auto visible_begin = begin;
  if (shape_.window > 0) {
    const Position oldest = first - (shape_.window - 1);
    visible_begin = std::partition_point(begin, visible_end,
                                         [oldest](const TableEntry& entry) { return entry.span().end <= oldest; });
  }
  tile_.members.push_back({.sequence = sequence,
                           .table = table,
                           .entry_begin = static_cast<std::int32_t>(visible_begin - begin),
                           .entry_end = static_cast<std::int32_t>(visible_end - begin)});
}

// What all members have in common and see all of. A block that a member's position lies in is its own.
std::int32_t TileCursor::count_shared() const {
  if (tile_.members.size() == 1) return 0;
  BlockTable common = tile_.members.front().seen();
  Position first = step_.sequences[tile_.members.front().sequence].first;
  Position last = first;
  for (const TileMember& member : tile_.members) {
    common = common.first(count_common(common, member.seen()));
    const Position position = step_.sequences[member.sequence].first;
    first = std::min(first, position);
    last = std::max(last, position);
  }
  const auto is_whole = [&](const TableEntry& entry) {
    return entry.span().end <= first && (shape_.window == 0 || last - entry.begin < shape_.window);
  };
  return static_cast<std::int32_t>(std::ranges::find_if_not(common, is_whole) - common.begin());
}

}  // namespace ebb
