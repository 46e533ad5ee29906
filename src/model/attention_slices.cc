// The mass of slices, of a tile whose splits are merged: what each query gave the slots of a block, by slice.
#include <algorithm>
#include <array>

#include "base/to_size.h"
#include "model/attention_work.h"
#include "model/slice_mass.h"

namespace ebb {
namespace {

// Of one block, over the queries of one member.
struct SliceSums {
  std::array<std::int64_t, kMaxBlockKeys> sum;
  std::array<std::int64_t, kMaxBlockKeys> window_sum;
  std::array<float, kMaxBlockKeys> window_max;
  std::array<float, kMaxBlockKeys> slices;  // of the query at hand

  void clear(std::size_t n) {
    std::fill_n(sum.begin(), n, 0);
    std::fill_n(window_sum.begin(), n, 0);
    std::fill_n(window_max.begin(), n, 0.0F);
  }
  void add(std::size_t n, bool is_in_window) {
    const std::int64_t counted = is_in_window ? -1 : 0;  // all bits, or none
    for (std::size_t j = 0; j < n; ++j) {
      const std::int64_t units = SliceMass::to_units(slices[j]);
      sum[j] += units;
      window_sum[j] += units & counted;
    }
    if (!is_in_window) return;
    for (std::size_t j = 0; j < n; ++j) window_max[j] = std::max(window_max[j], slices[j]);
  }
};

// Slots of the mass of one query, added up over each slice in order.
void add_slices(const float* slots, std::size_t n_slots, std::size_t n_slices, float* slices) {
  const std::size_t n = n_slots / n_slices;
  if (n == 1) {
    std::copy_n(slots, n_slots, slices);
    return;
  }
  for (std::size_t j = 0; j < n_slices; ++j) {
    float sum = 0.0F;
    for (std::size_t i = j * n; i < (j + 1) * n; ++i) sum += slots[i];
    slices[j] = sum;
  }
}

}  // namespace

bool AttentionWork::asks_slices(const AttentionTile& tile) const {
  return call_.tensors.slices != nullptr && plan_.slot_stride > 0 &&
         std::ranges::any_of(tile.members, [&](const TileMember& member) {
           return call_.step.sequences[member.sequence].asks_slices() && n_asking(tile, member) > 0;
         });
}

// Behind weigh_block_sums(): where block_m was there is 2^(m of the block - final m).
void AttentionWork::finish_slices(const AttentionTile& tile, std::int32_t e) const {
  for (std::size_t member = 0; member < tile.members.size(); ++member) {
    if (tile.members[member].entry_begin + e < tile.members[member].entry_end) finish_slices_of(tile, member, e);
  }
}

void AttentionWork::finish_slices_of(const AttentionTile& tile, std::size_t member, std::int32_t e) const {
  const TileMember& of = tile.members[member];
  const SequenceRows& rows = call_.step.sequences[of.sequence];
  const std::int32_t n = n_asking(tile, of);
  if (!rows.asks_slices() || n == 0) return;
  const std::size_t n_slices = to_size(rows.n_slices);
  SliceSums sums;
  sums.clear(n_slices);
  alignas(64) std::array<float, kMaxBlockKeys> slots;
  for (std::int32_t token = tile.n_tokens - n; token < tile.n_tokens; ++token) {
    const std::int32_t query = static_cast<std::int32_t>(member) * tile.n_tokens + token;
    weigh_slots(block_sums(tile, e), query * plan_.group, slots.data());
    add_slices(slots.data(), to_size(call_.shape.layout.block_size), n_slices, sums.slices.data());
    sums.add(n_slices, tile.token_begin + token >= rows.n_rows - rows.n_window_rows);
  }
  const bool has_last = tile.token_begin + tile.n_tokens == rows.n_rows;
  call_.tensors.slices->add({.sequence = of.sequence,
                             .layer = call_.layer,
                             .head = tile.head,
                             .entry = to_size(of.entry_begin + e),
                             .sum = std::span(sums.sum).first(n_slices),
                             .window_sum = std::span(sums.window_sum).first(n_slices),
                             .window_max = std::span(sums.window_max).first(n_slices),
                             .last = std::span(sums.slices).first(has_last ? n_slices : 0),
                             .is_alone = has_last && n == rows.n_mass_rows});
}

// What the query whose rows begin at `row` gave each slot: over heads in order. total_.l holds 1 / l.
void AttentionWork::weigh_slots(const float* sums, std::int32_t row, float* mass) const {
  const std::int32_t n = plan_.slot_stride;
  const float* const factors = sums + plan_.row_capacity;
  const float* p = sums + 2 * plan_.row_capacity + static_cast<std::ptrdiff_t>(row) * n;
  std::fill_n(mass, n, 0.0F);
  for (std::int32_t h = row; h < row + plan_.group; ++h, p += n) {
    const float factor = factors[h];
    const float share = total_.l[h];
    if (factor == 0.0F) continue;
    kernels_.add_slots(p, factor, share, mass, n);
  }
}

}  // namespace ebb
