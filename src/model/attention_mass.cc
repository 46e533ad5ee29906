// The mass of a tile's blocks, once its splits are merged: what each row gave each.
#include <algorithm>

#include "base/to_size.h"
#include "model/attention_work.h"

namespace ebb {

void AttentionWork::finish_mass(const AttentionTile& tile) const {
  const auto asks = [&](std::int32_t query) {
    return query % tile.n_tokens >= tile.n_tokens - n_asking(tile, tile.member(query));
  };
  for (std::int32_t query = 0; query < tile.n_queries(); ++query) {
    if (!asks(query)) continue;
    const TileMember& member = tile.member(query);
    float* const out = mass_of(tile, query);
    std::fill(out, out + member.entry_begin, 0.0F);
    std::fill(out + member.entry_end, out + member.table.size(), 0.0F);
  }
  for (std::int32_t e = 0; e < tile.n_seen(); ++e) {
    float* const sums = block_sums(tile, e);
    weigh_block_sums(sums, tile.n_queries() * plan_.group);
    for (std::int32_t query = 0; query < tile.n_queries(); ++query) {
      const TileMember& member = tile.member(query);
      if (!asks(query) || member.entry_begin + e >= member.entry_end) continue;
      float sum = 0.0F;
      for (std::int32_t h = 0; h < plan_.group; ++h) sum += sums[query * plan_.group + h];
      mass_of(tile, query)[member.entry_begin + e] = sum;
    }
    if (!keeps_slots_) continue;
    finish_slices(tile, e);
    finish_reliances(tile, e);
  }
}

float* AttentionWork::mass_of(const AttentionTile& tile, std::int32_t query) const {
  const std::size_t row = batch_row(tile, query) * to_size(call_.shape.n_kv_heads) + tile.head.index();
  return call_.tensors.mass + row * to_size(call_.step.mass_stride);
}

// block_l becomes the block's share of each row's attention. total_.l holds 1 / l.
void AttentionWork::weigh_block_sums(float* sums, std::int32_t n_rows) const {
  float* const factors = sums + plan_.row_capacity;
  for (std::int32_t row = 0; row < n_rows; ++row) {
    factors[row] = total_.m[row] == kNothingSeen ? kNothingSeen : factors[row] - total_.m[row];
  }
  kernels_.exp2_in_place(factors, (n_rows + kVectorKeys - 1) / kVectorKeys * kVectorKeys);
  for (std::int32_t row = 0; row < n_rows; ++row) sums[row] = sums[row] * factors[row] * total_.l[row];
}

}  // namespace ebb
