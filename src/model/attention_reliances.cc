// What the rows of a tile rely on, once its splits are merged: slices that a query head gave more than kReliance.
#include <algorithm>
#include <bit>

#include "base/to_size.h"
#include "model/attention_work.h"
#include "model/step_reliances.h"

namespace ebb {

bool AttentionWork::asks_reliances(const AttentionTile& tile) const {
  return call_.tensors.mass != nullptr && !call_.tensors.last_layer && plan_.slot_stride > 0 &&
         std::ranges::any_of(tile.members, [&](const TileMember& member) {
           return call_.step.sequences[member.sequence].reliances != nullptr;
         });
}

// Behind weigh_block_sums().
void AttentionWork::finish_reliances(const AttentionTile& tile, std::int32_t e) const {
  if (!asks_reliances(tile)) return;
  for (std::size_t member = 0; member < tile.members.size(); ++member) {
    if (tile.members[member].entry_begin + e < tile.members[member].entry_end) finish_reliances_of(tile, member, e);
  }
}

void AttentionWork::finish_reliances_of(const AttentionTile& tile, std::size_t member, std::int32_t e) const {
  const TileMember& of = tile.members[member];
  const SequenceRows& rows = call_.step.sequences[of.sequence];
  if (rows.reliances == nullptr) return;
  StepReliances& reliances = *rows.reliances;
  const TableEntry& entry = of.table[to_size(of.entry_begin + e)];
  const std::int32_t first_on = reliances.slice_at(entry.begin);
  const float* const sums = block_sums(tile, e);
  std::int32_t slice = -1;  // of the rows at hand
  std::uint32_t found = 0;  // a bit for each slice of the block
  const auto put = [&] {
    for (; found != 0; found &= found - 1) {
      const std::int32_t on = first_on + std::countr_zero(found);
      if (on < slice) reliances.add({.of = slice, .on = on});
    }
  };
  for (std::int32_t token = 0; token < tile.n_tokens; ++token) {
    const std::int32_t here = reliances.slice_at(rows.first + tile.token_begin + token);
    if (here != slice) put();
    slice = here;
    const std::int32_t query = static_cast<std::int32_t>(member) * tile.n_tokens + token;
    for (std::int32_t row = query * plan_.group; row < (query + 1) * plan_.group; ++row) {
      // Few rows give a whole block so much.
      if (sums[row] > kReliance) found |= slices_relied_on(sums, row, entry, reliances.n_slice_tokens());
    }
  }
  put();
}

// A bit for each slice of the entry's block. total_.l holds 1 / l.
std::uint32_t AttentionWork::slices_relied_on(const float* sums, std::int32_t row, const TableEntry& entry,
                                              std::int32_t n_slice_tokens) const {
  const std::int32_t n_slots = plan_.slot_stride;
  const float* const p = sums + 2 * plan_.row_capacity + static_cast<std::ptrdiff_t>(row) * n_slots;
  const float share = sums[plan_.row_capacity + row] * total_.l[row];
  std::uint32_t found = 0;
  for (std::int32_t begin = 0; begin < entry.n_tokens; begin += n_slice_tokens) {
    float sum = 0.0F;
    for (std::int32_t slot = begin; slot < std::min(begin + n_slice_tokens, entry.n_tokens); ++slot) {
      if (slot > 0 || entry.begin > Position(0)) sum += p[slot];
    }
    if (sum * share > kReliance) found |= std::uint32_t{1} << (begin / n_slice_tokens);
  }
  return found;
}

}  // namespace ebb
