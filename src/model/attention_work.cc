#include "model/attention_work.h"

#include <algorithm>
#include <atomic>
#include <numbers>

#include "base/check.h"
#include "base/to_size.h"
#include "model/square_choice.h"

namespace ebb {
namespace {

constexpr std::size_t kLineBytes = 64;

std::byte* first_line(std::vector<std::byte>& bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  return bytes.data() + (kLineBytes - address % kLineBytes) % kLineBytes;
}

// The step size that leaves the fewest rows of padding without reading blocks more often than need be.
std::int32_t choose_step_rows(const AttentionKernels& kernels, std::int32_t n_rows) {
  const std::int32_t* last = kernels.step_sizes;
  while (last[1] != 0) ++last;
  const std::int32_t n_steps = (n_rows + *last - 1) / *last;
  const std::int32_t* size = kernels.step_sizes;
  while (*size * n_steps < n_rows) ++size;
  return *size;
}

}  // namespace

BlockView view_frame(const FrameLayout& layout, const std::byte* frame) {
  BlockView view;
  view.frame_bytes = static_cast<std::int32_t>(layout.frame_bytes());
  view.k = frame + layout.k_offset();
  view.k_scales = frame + layout.k_scales_offset();
  view.v = frame + layout.v_offset();
  view.v_scales = frame + layout.v_scales_offset();
  return view;
}

void AttentionWork::reserve(AttentionScratch& scratch, std::size_t n_bytes, std::int32_t n_threads) {
  const std::size_t n_arrivals = to_size(kTilesPerThread * n_threads);
  if (scratch.arrivals_.size() < n_arrivals) scratch.arrivals_.resize(n_arrivals, 0);
  if (scratch.bytes_.size() >= n_bytes + kLineBytes) return;
  scratch.bytes_ = {};  // nothing in it outlives a layer: do not copy
  scratch.bytes_.resize(n_bytes + kLineBytes);
}

AttentionWork::AttentionWork(const AttentionCall& call)
    : call_(call),
      kernels_(current_kernels()),
      plan_(make_plan(call.shape, call.step, call.scratch.cohorts_, call.layer, call.n_threads)),
      frame_bytes_(call.shape.layout.frame_bytes()),
      forms_(call.shape, call.step, call.scratch) {
  const FrameLayout& layout = call.shape.layout;
  offsets_ = view_frame(layout, call.step.frames);
  rows_.head_dim_k = layout.head_dim_k;
  rows_.head_dim_v = layout.head_dim_v;
  rows_.key_stride = layout.key_stride();
  rows_.value_stride = plan_.value_stride;
  rows_.window = call.shape.window;
  rows_.scale = call.shape.scale * std::numbers::log2e_v<float>;
  lay_out();
}

void AttentionWork::lay_out() {
  std::vector<std::byte>& bytes = call_.scratch.bytes_;
  const std::size_t n_bytes = plan_.bytes(call_.n_threads);
  EBB_CHECK(n_bytes + kLineBytes <= bytes.size(), "{} bytes of scratch, {} needed: reserve() each step first",
            bytes.size(), n_bytes);
  EBB_CHECK(call_.scratch.cohorts_.n_sequences() == call_.step.sequences.size(),
            "cohorts of {} sequences for a step of {}: reserve() each step first", call_.scratch.cohorts_.n_sequences(),
            call_.step.sequences.size());
  EBB_CHECK(call_.scratch.arrivals_.size() >= to_size(kTilesPerThread * call_.n_threads), "{} threads, reserved for {}",
            call_.n_threads, call_.scratch.arrivals_.size() / kTilesPerThread);

  float* const base = reinterpret_cast<float*>(first_line(bytes));
  split_sums_ = base + to_size(call_.n_threads) * plan_.thread_floats;
  shared_block_sums_ = split_sums_ + plan_.n_split_sums * plan_.split_sum_floats;

  const std::size_t capacity = to_size(plan_.row_capacity);
  float* at = base + to_size(call_.ith) * plan_.thread_floats;
  split_ = sums_at(at);
  at += plan_.split_sum_floats;
  total_ = sums_at(at);
  at += plan_.split_sum_floats;
  own_ = sums_at(at);
  at += plan_.split_sum_floats;
  rows_.unpacked_v = at;
  at += call_.shape.layout.block_size * rows_.value_stride;
  rows_.unpacked_k = at;
  at += rows_.head_dim_k * rows_.key_stride;
  packed_q_ = at;
  at += plan_.row_capacity * rows_.head_dim_k;
  positions_ = reinterpret_cast<std::int32_t*>(at);
  own_block_sums_ = at + capacity;
  thread_block_sums_ = own_block_sums_ + plan_.block_sum_floats;
  rows_.q = packed_q_;
  rows_.positions = positions_;
}

AttentionSums AttentionWork::sums_at(float* at) const {
  const std::size_t capacity = to_size(plan_.row_capacity);
  return {.m = at, .l = at + capacity, .o = at + 2 * capacity};
}

AttentionSums AttentionWork::slot(std::int32_t item) const {
  return sums_at(split_sums_ + to_size(item) * plan_.split_sum_floats);
}

float* AttentionWork::block_sums(const AttentionTile& tile, std::int32_t entry) const {
  float* const begin = plan_.split ? shared_block_sums_ + tile.block_sums_begin : thread_block_sums_;
  return begin + to_size(entry) * plan_.block_sum_floats;
}

void AttentionWork::run() {
  TileCursor cursor(call_.shape, call_.step, call_.scratch.cohorts_, call_.layer, plan_);
  while (true) {
    const std::int32_t item = call_.scratch.next_item_.fetch_add(1, std::memory_order_relaxed);
    if (!cursor.seek(item)) return;
    const AttentionTile& tile = cursor.tile();
    if (!is_read(tile)) continue;
    const bool notes_reliances = asks_reliances(tile);
    keeps_mass_ = asks_mass(tile) || notes_reliances;
    keeps_slots_ = notes_reliances || (keeps_mass_ && asks_slices(tile));
    if (tile.members.size() == 1) load(tile, 0, tile.n_queries());
    if (plan_.split) {
      attend_part(tile, item - tile.first_item);
    } else {
      attend_tile(tile);
    }
  }
}

// Makes these queries the rows that the kernels see.
void AttentionWork::load(const AttentionTile& tile, std::int32_t query_begin, std::int32_t n_queries) {
  const AttentionTensors& tensors = call_.tensors;
  const std::int32_t n_rows = n_queries * plan_.group;
  rows_.step_rows = choose_step_rows(kernels_, n_rows);
  rows_.n_rows = (n_rows + rows_.step_rows - 1) / rows_.step_rows * rows_.step_rows;
  for (std::int32_t row = 0; row < rows_.n_rows; ++row) {
    const std::int32_t source = std::min(row, n_rows - 1);
    const std::int32_t query = query_begin + source / plan_.group;
    const std::int32_t head = tile.head.value() * plan_.group + source % plan_.group;
    const SequenceRows& sequence = call_.step.sequences[tile.member(query).sequence];
    positions_[row] = (sequence.first + tile.token(query)).value();
    load_query(row, tensors.q + batch_row(tile, query) * tensors.q_row_stride + to_size(head) * tensors.q_head_stride);
  }
}

void AttentionWork::load_query(std::int32_t row, const float* query) {
  const std::ptrdiff_t step = rows_.step_rows;
  float* const out = packed_q_ + row / step * step * rows_.head_dim_k + row % step;
  for (std::ptrdiff_t d = 0; d < rows_.head_dim_k; ++d) out[d * step] = query[d];
}

std::size_t AttentionWork::batch_row(const AttentionTile& tile, std::int32_t query) const {
  return to_size(call_.step.sequences[tile.member(query).sequence].row_begin + tile.token(query));
}

void AttentionWork::clear(const AttentionSums& sums, std::int32_t n_rows) const {
  std::fill_n(sums.m, n_rows, kNothingSeen);
  std::fill_n(sums.l, n_rows, 0.0F);
  std::fill_n(sums.o, n_rows * rows_.value_stride, 0.0F);
}

void AttentionWork::add_up_in(const AttentionSums& sums) {
  rows_.m = sums.m;
  rows_.l = sums.l;
  rows_.o = sums.o;
}

void AttentionWork::attend_tile(const AttentionTile& tile) {
  clear(total_, tile.n_queries() * plan_.group);
  std::int32_t split = kNoSplit;
  while ((split = find_split_behind(tile, split)) != kNoSplit) {
    attend_split(tile, split, split_);
    merge(tile, split_);
  }
  finish(tile);
}

void AttentionWork::attend_part(const AttentionTile& tile, std::int32_t part) {
  std::int32_t split = find_split_behind(tile, kNoSplit);
  for (std::int32_t i = 0; i < part; ++i) split = find_split_behind(tile, split);
  attend_split(tile, split, slot(tile.first_item + part));

  std::atomic_ref<std::int32_t> arrivals(call_.scratch.arrivals_[to_size(tile.index)]);
  if (arrivals.fetch_add(1, std::memory_order_acq_rel) + 1 < tile.n_items) return;
  arrivals.store(0, std::memory_order_relaxed);
  clear(total_, tile.n_queries() * plan_.group);
  for (std::int32_t i = 0; i < tile.n_items; ++i) merge(tile, slot(tile.first_item + i));
  finish(tile);
}

// The sums of one split, from its beginning; of kNoSplit, of nothing.
void AttentionWork::attend_split(const AttentionTile& tile, std::int32_t split, const AttentionSums& sums) {
  if (tile.members.size() > 1) return attend_cohort(tile, split, sums);
  clear(sums, rows_.n_rows);
  add_up_in(sums);
  const TileMember& member = tile.members.front();
  const EntryRange entries = find_entries(member, split);
  const SquareChoice* const squares = call_.tensors.squares;
  const bool chooses = squares != nullptr && squares->asks(member.sequence);
  for (std::int32_t e = entries.begin; e < entries.end; ++e) {
    if (chooses) {
      attend_squares(tile, e, block_sums(tile, e));
    } else {
      attend_entry(tile, member, e, block_sums(tile, e));
    }
  }
}

// An entry by those rows of the tile, of one sequence, that look at it: runs of whole blocks of rows.
void AttentionWork::attend_squares(const AttentionTile& tile, std::int32_t e, float* block_sums) {
  const TileMember& member = tile.members.front();
  const Position first = call_.step.sequences[member.sequence].first + tile.token_begin;
  const Position end = first + tile.n_tokens;
  const std::int32_t block_size = call_.shape.layout.block_size;
  const auto looks = [&](Position row) {
    return call_.tensors.squares->looks_at(member.sequence, tile.head, row, member.entry_begin + e);
  };
  if (keeps_mass_) clear_block_sums(block_sums);
  for (Position begin = first; begin < end;) {
    const bool is_looked_at = looks(begin);
    Position run_end = begin;
    while (run_end < end && looks(run_end) == is_looked_at) {
      run_end = std::min(end, Position((run_end.value() / block_size + 1) * block_size));
    }
    if (is_looked_at) attend_entry(tile, member, e, block_sums, {begin.value(), run_end.value()});
    begin = run_end;
  }
}

// What rows that do not look have of a block.
void AttentionWork::clear_block_sums(float* block_sums) const {
  std::fill_n(block_sums, plan_.row_capacity, 0.0F);
  std::fill_n(block_sums + plan_.row_capacity, plan_.row_capacity, kNothingSeen);
  if (keeps_slots_) std::fill_n(slots_of(block_sums, 0), plan_.row_capacity * plan_.slot_stride, 0.0F);
}

// The sums of one split for all members of a cohort: together where they read the same, then each by itself.
void AttentionWork::attend_cohort(const AttentionTile& tile, std::int32_t split, const AttentionSums& sums) {
  load(tile, 0, tile.n_queries());
  clear(sums, rows_.n_rows);
  add_up_in(sums);
  const TileMember& any = tile.members.front();
  const EntryRange entries = find_entries(any, split);
  for (std::int32_t e = entries.begin; e < std::min(entries.end, tile.n_shared); ++e) {
    attend_entry(tile, any, e, block_sums(tile, e));
  }
  for (std::int32_t query = 0; query < tile.n_queries(); ++query) {
    EntryRange own = find_entries(tile.member(query), split);
    own.begin = std::max(own.begin, tile.n_shared);
    if (own.begin < own.end) attend_own(tile, query, own, sums);
  }
}

// Goes on from a member's rows of the sums, in a place apart: padding must not reach the next member's.
void AttentionWork::attend_own(const AttentionTile& tile, std::int32_t query, EntryRange entries,
                               const AttentionSums& sums) {
  const std::int32_t row = query * plan_.group;
  load(tile, query, 1);
  clear(own_, rows_.n_rows);
  copy_rows(rows_at(sums, row), own_);
  add_up_in(own_);
  for (std::int32_t e = entries.begin; e < entries.end; ++e) {
    attend_entry(tile, tile.member(query), e, own_block_sums_);
    if (keeps_mass_) keep_own(tile, query, e);
  }
  copy_rows(own_, rows_at(sums, row));
}

// A member's block sums, among those of its cohort.
void AttentionWork::keep_own(const AttentionTile& tile, std::int32_t query, std::int32_t e) const {
  const std::int32_t row = query * plan_.group;
  float* const kept = block_sums(tile, e);
  std::copy_n(own_block_sums_, plan_.group, kept + row);
  std::copy_n(own_block_sums_ + plan_.row_capacity, plan_.group, kept + plan_.row_capacity + row);
  if (!keeps_slots_) return;
  std::copy_n(slots_of(own_block_sums_, 0), plan_.group * plan_.slot_stride, slots_of(kept, row));
}

AttentionSums AttentionWork::rows_at(const AttentionSums& sums, std::int32_t row) const {
  return {.m = sums.m + row, .l = sums.l + row, .o = sums.o + static_cast<std::ptrdiff_t>(row) * rows_.value_stride};
}

// The rows of one query.
void AttentionWork::copy_rows(const AttentionSums& from, const AttentionSums& to) const {
  std::copy_n(from.m, plan_.group, to.m);
  std::copy_n(from.l, plan_.group, to.l);
  std::copy_n(from.o, plan_.group * rows_.value_stride, to.o);
}

void AttentionWork::attend_entry(const AttentionTile& tile, const TileMember& member, std::int32_t e, float* block_sums,
                                 QueryRange rows) {
  const BlockTable seen = member.seen();
  const TableEntry& entry = seen[to_size(e)];
  const std::size_t at = entry.frame.index() * frame_bytes_;
  BlockView block = offsets_;
  block.k += at;
  block.k_scales += at;
  block.v += at;
  block.v_scales += at;
  block.begin = entry.begin.value();
  block.n_tokens = entry.n_tokens;
  block.query_begin = rows.begin;
  block.query_end = rows.end;
  if (to_size(e + 1) < seen.size()) {
    block.next_frame = bytes_between(entry.frame, seen[to_size(e + 1)].frame, frame_bytes_);
  }
  if (keeps_mass_) {
    block.block_l = block_sums;
    block.block_m = block_sums + plan_.row_capacity;
    if (keeps_slots_) block.block_p = slots_of(block_sums, 0);
  }
  const FrameLayout& layout = call_.shape.layout;
  // Positions ascend over the rows of a sequence, and no entry that it sees begins behind its last; what a cohort
  // shares ends before all of them.
  if (layout.seals() && positions_[0] < entry.span().end.value()) {
    return attend_open(forms_.open_rows(member.sequence, tile.head, entry), entry, block);
  }
  check_sealed(entry);
  kernels_.attend_block[static_cast<std::size_t>(layout.row_type)](rows_, block);
}

void AttentionWork::check_sealed(const TableEntry& entry) const {
  const FrameLayout& layout = call_.shape.layout;
  EBB_CHECK(!layout.seals() || entry.n_tokens == layout.block_size,
            "the block at {} has {} tokens of {}, and a later query reads it sealed", entry.begin.value(),
            entry.n_tokens, layout.block_size);
}

// A block that holds positions of the tile: those rows see it open, later ones sealed.
void AttentionWork::attend_open(const std::byte* open_rows, const TableEntry& entry, BlockView sealed) {
  const FrameLayout open = call_.shape.layout.open_layout();
  const std::int32_t end = entry.span().end.value();
  BlockView block = sealed;
  sealed.query_begin = std::max(sealed.query_begin, end);
  if (positions_[rows_.n_rows - 1] >= end && sealed.query_begin < sealed.query_end) {
    check_sealed(entry);
    kernels_.attend_block[static_cast<std::size_t>(call_.shape.layout.row_type)](rows_, sealed);
  }
  if (block.query_begin >= end) return;
  EBB_CHECK(open_rows != nullptr, "a query looks into the block at {}, which is sealed", entry.begin.value());
  block.k = open_rows + open.k_offset();
  block.v = open_rows + open.v_offset();
  block.next_frame = 0;
  block.query_end = std::min(block.query_end, end);
  kernels_.attend_block[static_cast<std::size_t>(open.row_type)](rows_, block);
}

void AttentionWork::merge(const AttentionTile& tile, const AttentionSums& part) const {
  for (std::size_t row = 0; row < to_size(tile.n_queries() * plan_.group); ++row) {
    if (part.m[row] != kNothingSeen) merge_row(part, row);
  }
}

void AttentionWork::merge_row(const AttentionSums& part, std::size_t row) const {
  const float m = std::max(total_.m[row], part.m[row]);
  alignas(kLineBytes) float factors[kVectorKeys] = {total_.m[row] - m, part.m[row] - m};
  kernels_.exp2_in_place(factors, kVectorKeys);
  total_.m[row] = m;
  total_.l[row] = total_.l[row] * factors[0] + part.l[row] * factors[1];
  float* const o = total_.o + row * to_size(rows_.value_stride);
  const float* const added = part.o + row * to_size(rows_.value_stride);
  for (std::size_t d = 0; d < to_size(rows_.value_stride); ++d) o[d] = o[d] * factors[0] + added[d] * factors[1];
}

// Turns l into 1 / l, and writes O * (1 / l).
void AttentionWork::finish(const AttentionTile& tile) const {
  const AttentionTensors& tensors = call_.tensors;
  for (std::int32_t row = 0; row < tile.n_queries() * plan_.group; ++row) {
    float& l = total_.l[row];
    l = l == 0.0F ? 0.0F : 1.0F / l;
    const std::int32_t head = tile.head.value() * plan_.group + row % plan_.group;
    const float* const o = total_.o + static_cast<std::ptrdiff_t>(row) * rows_.value_stride;
    float* const out = tensors.out + batch_row(tile, row / plan_.group) * tensors.out_row_stride +
                       to_size(head) * tensors.out_head_stride;
    for (std::int32_t d = 0; d < rows_.head_dim_v; ++d) out[d] = o[d] * l;
  }
  if (keeps_mass_) finish_mass(tile);
}

// How many of a sequence's last rows are a member's queries in this tile.
std::int32_t AttentionWork::n_of_last(const AttentionTile& tile, const TileMember& member, std::int32_t n_last) const {
  const SequenceRows& rows = call_.step.sequences[member.sequence];
  return std::clamp(tile.token_begin + tile.n_tokens - (rows.n_rows - n_last), 0, tile.n_tokens);
}

std::int32_t AttentionWork::n_asking(const AttentionTile& tile, const TileMember& member) const {
  return n_of_last(tile, member, call_.step.sequences[member.sequence].n_mass_rows);
}

bool AttentionWork::asks_mass(const AttentionTile& tile) const {
  return call_.tensors.mass != nullptr &&
         std::ranges::any_of(tile.members, [&](const TileMember& member) { return n_asking(tile, member) > 0; });
}

bool AttentionWork::is_read(const AttentionTile& tile) const {
  return !call_.tensors.last_layer || asks_mass(tile) ||
         std::ranges::any_of(tile.members, [&](const TileMember& member) {
           return n_of_last(tile, member, call_.step.sequences[member.sequence].n_outputs) > 0;
         });
}

}  // namespace ebb
