// One thread's part of attend(): takes items of work (attention_plan.h), runs the kernels over their blocks, merges
// splits, writes results.
//
// Thread rule: one per thread and layer; threads meet only in AttentionScratch, by its atomic counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "model/attention.h"
#include "model/attention_forms.h"
#include "model/attention_kernel.h"
#include "model/attention_plan.h"

namespace ebb {

// The kernels of current_kernel_set().
[[nodiscard]] const AttentionKernels& current_kernels();

// The planes of a frame that begins here; what a block holds of it is the caller's to say.
[[nodiscard]] BlockView view_frame(const FrameLayout& layout, const std::byte* frame);

// From one frame to another, for BlockView::next_frame.
[[nodiscard]] inline std::ptrdiff_t bytes_between(FrameIndex from, FrameIndex to, std::size_t frame_bytes) {
  return (static_cast<std::ptrdiff_t>(to.index()) - static_cast<std::ptrdiff_t>(from.index())) *
         static_cast<std::ptrdiff_t>(frame_bytes);
}

// The greatest score of a row that sees nothing.
inline constexpr float kNothingSeen = -std::numeric_limits<float>::infinity();

// Rows at positions [begin, end).
struct QueryRange {
  std::int32_t begin = INT32_MIN;
  std::int32_t end = INT32_MAX;
};

// Running softmax of a tile's rows, padding included: of one split, or of the splits merged so far.
struct AttentionSums {
  float* m = nullptr;  // [row_capacity]
  float* l = nullptr;  // [row_capacity]
  float* o = nullptr;  // [row_capacity][value_stride]
};

// What a layer's attend() was called with.
struct AttentionCall {
  const AttentionShape& shape;
  const AttentionStep& step;
  LayerIndex layer;
  const AttentionTensors& tensors;
  AttentionScratch& scratch;
  std::int32_t ith;
  std::int32_t n_threads;
};

struct AttentionWork {
 public:
  explicit AttentionWork(const AttentionCall& call);
  void run();

  static void reserve(AttentionScratch& scratch, std::size_t n_bytes, std::int32_t n_threads);
  static void reset(AttentionScratch& scratch) { scratch.next_item_.store(0, std::memory_order_relaxed); }

 private:
  void lay_out();
  void load(const AttentionTile& tile, std::int32_t query_begin, std::int32_t n_queries);
  void load_query(std::int32_t row, const float* query);
  void add_up_in(const AttentionSums& sums);
  void clear(const AttentionSums& sums, std::int32_t n_rows) const;
  void attend_tile(const AttentionTile& tile);
  void attend_part(const AttentionTile& tile, std::int32_t part);
  void attend_split(const AttentionTile& tile, std::int32_t split, const AttentionSums& sums);
  void attend_cohort(const AttentionTile& tile, std::int32_t split, const AttentionSums& sums);
  void attend_own(const AttentionTile& tile, std::int32_t query, EntryRange entries, const AttentionSums& sums);
  void attend_squares(const AttentionTile& tile, std::int32_t e, float* block_sums);
  void attend_entry(const AttentionTile& tile, const TileMember& member, std::int32_t e, float* block_sums,
                    QueryRange rows = {});
  void clear_block_sums(float* block_sums) const;
  void keep_own(const AttentionTile& tile, std::int32_t query, std::int32_t e) const;
  void check_sealed(const TableEntry& entry) const;
  void attend_open(const std::byte* open_rows, const TableEntry& entry, BlockView sealed);
  void copy_rows(const AttentionSums& from, const AttentionSums& to) const;
  void merge(const AttentionTile& tile, const AttentionSums& part) const;
  void merge_row(const AttentionSums& part, std::size_t row) const;
  void finish(const AttentionTile& tile) const;
  void finish_mass(const AttentionTile& tile) const;
  void weigh_block_sums(float* sums, std::int32_t n_rows) const;
  [[nodiscard]] std::int32_t n_of_last(const AttentionTile& tile, const TileMember& member, std::int32_t n_last) const;
  // Of a member's queries in this tile the last ones.
  [[nodiscard]] std::int32_t n_asking(const AttentionTile& tile, const TileMember& member) const;
  [[nodiscard]] bool asks_mass(const AttentionTile& tile) const;
  [[nodiscard]] bool is_read(const AttentionTile& tile) const;
  [[nodiscard]] bool asks_slices(const AttentionTile& tile) const;
  void finish_slices(const AttentionTile& tile, std::int32_t e) const;
  void finish_slices_of(const AttentionTile& tile, std::size_t member, std::int32_t e) const;
  void weigh_slots(const float* sums, std::int32_t row, float* mass) const;
  [[nodiscard]] bool asks_reliances(const AttentionTile& tile) const;
  void finish_reliances(const AttentionTile& tile, std::int32_t e) const;
  void finish_reliances_of(const AttentionTile& tile, std::size_t member, std::int32_t e) const;
  [[nodiscard]] std::uint32_t slices_relied_on(const float* sums, std::int32_t row, const TableEntry& entry,
                                               std::int32_t n_slice_tokens) const;

  [[nodiscard]] std::size_t batch_row(const AttentionTile& tile, std::int32_t query) const;
  [[nodiscard]] AttentionSums slot(std::int32_t item) const;
  [[nodiscard]] AttentionSums sums_at(float* at) const;
  [[nodiscard]] AttentionSums rows_at(const AttentionSums& sums, std::int32_t row) const;
  [[nodiscard]] float* mass_of(const AttentionTile& tile, std::int32_t query) const;
  [[nodiscard]] float* block_sums(const AttentionTile& tile, std::int32_t entry) const;
  // p of a row's slots, within an entry's block sums.
  [[nodiscard]] float* slots_of(float* block_sums, std::int32_t row) const {
    return block_sums + 2 * plan_.row_capacity + static_cast<std::ptrdiff_t>(row) * plan_.slot_stride;
  }

  const AttentionCall& call_;
  const AttentionKernels& kernels_;
  const AttentionPlan plan_;
  const std::size_t frame_bytes_;
  const BlockForms forms_;
  BlockView offsets_;  // of the planes of frame 0
  TileRows rows_;
  AttentionSums split_;
  AttentionSums total_;
  AttentionSums own_;  // of one member of a cohort
  float* packed_q_ = nullptr;
  std::int32_t* positions_ = nullptr;
  float* split_sums_ = nullptr;
  float* own_block_sums_ = nullptr;
  float* thread_block_sums_ = nullptr;
  float* shared_block_sums_ = nullptr;
  // Of the tile under way.
  bool keeps_mass_ = false;
  bool keeps_slots_ = false;
};

}  // namespace ebb
