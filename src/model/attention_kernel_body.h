// The kernels' one body, over a Vector: 16 floats in whatever registers an instruction set has.
//
// Included by attention_<set>.cc, each with a Vector type V of its own in an anonymous namespace: every function here
// is a template over V and so stays inside its file, and none calls the standard library. What V must offer is what
// attention_portable.cc spells out in plain loops. All sets round alike, operation by operation, and so agree bit for
// bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/attention_kernel.h"
#include "model/attention_kernel_multiply.h"
#include "model/attention_kernel_rows.h"

namespace ebb::kernel {

inline constexpr float kMinusInfinity = -__builtin_inff();

// 2^x for x <= 0. x = n + r with |r| <= 1/2; 2^r by a polynomial (relative error 1e-8 before rounding), exactly 1 at 0;
// 2^n by adding n to the exponent. Below -126, where that would leave the normal numbers, 0.
template <class V>
V exp2(V x) {
  constexpr float kRoundToInteger = 12582912.0F;  // 1.5 * 2^23: adding it leaves n in the low bits
  const V shifted = V::add(x, V::broadcast(kRoundToInteger));
  const V r = V::sub(x, V::sub(shifted, V::broadcast(kRoundToInteger)));
  V p = V::broadcast(0x1.44138ap-13F);
  p = V::fma(p, r, V::broadcast(0x1.5f0890p-10F));
  p = V::fma(p, r, V::broadcast(0x1.3b2a54p-7F));
  p = V::fma(p, r, V::broadcast(0x1.c6af6cp-5F));
  p = V::fma(p, r, V::broadcast(0x1.ebfbe0p-3F));
  p = V::fma(p, r, V::broadcast(0x1.62e430p-1F));
  p = V::fma(p, r, V::broadcast(1.0F));
  return V::zero_below(x, -126.0F, V::add_exponent(p, shifted));
}

// What the keys of 16 slots are multiplied with: the same number for all, or one for each.
template <class V, int R>
struct RowQueries {
  const float* q;
  V load(int d, int r) const { return V::broadcast(q[d * R + r]); }
};

template <class V, int R>
struct DiagonalQueries {
  const float* q;
  V load(int d, int r) const { return V::load(q + (d * R + r) * kVectorFloats); }
};

// scores[r][slot .. slot + 16 N) = scale * (q[r] . k[slot ...]), by fma over dimensions 0, 1, 2, ...
template <class V, int R, int N, class Rows, class Queries>
void score_keys(const Rows& rows, const Queries& q, const TileRows& tile, int slot, float* scores) {
  V sum[R][N];
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < N; ++n) sum[r][n] = V::broadcast(0.0F);
  }
  const int span = Rows::kScaled ? kGroup : tile.head_dim_k;
  for (int group = 0; group < tile.head_dim_k; group += span) {
    V key_scale[N];
    for (int n = 0; n < N; ++n) key_scale[n] = rows.load_key_scale(group, slot + kVectorFloats * n);
    for (int d = group; d < group + span; ++d) {
      if constexpr (Rows::kAhead) {
        prefetch<V, N * kVectorFloats* int{sizeof(typename Rows::Element)}>(rows.key(d, slot), rows.next);
      }
      V key[N];
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) {
        key[n] = rows.load_key(d, slot + kVectorFloats * n);
        if constexpr (Rows::kScaled) key[n] = V::mul(key[n], key_scale[n]);
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const V query = q.load(d, r);
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) sum[r][n] = V::fma(query, key[n], sum[r][n]);
      }
    }
  }
  const V scale = V::broadcast(tile.scale);
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < N; ++n) V::mul(sum[r][n], scale).store(scores + r * kScoreStride + slot + kVectorFloats * n);
  }
}

template <class V, int R, class Rows, class Queries>
void score_block(const Rows& rows, const Queries& q, const TileRows& tile, SlotRange seen, float* scores) {
  constexpr int kWide = V::template tile_width<R>();
  int slot = seen.begin / kVectorFloats * kVectorFloats;
  for (; slot + (kWide - 1) * kVectorFloats < seen.end; slot += kWide * kVectorFloats) {
    score_keys<V, R, kWide>(rows, q, tile, slot, scores);
  }
  if constexpr (kWide > 2) {
    for (; slot + kVectorFloats < seen.end; slot += 2 * kVectorFloats) score_keys<V, R, 2>(rows, q, tile, slot, scores);
  }
  for (; slot < seen.end; slot += kVectorFloats) score_keys<V, R, 1>(rows, q, tile, slot, scores);
}

// o[r][dim .. dim + 16 N) = o * alpha[r] + sum over the slots of p[r][slot] * v[slot], by fma over slots in order.
template <class V, int R, int N, class Rows>
void add_values(const Rows& rows, const float* p, SlotRange seen, const float* alpha, int dim, float* o, int stride) {
  V sum[R][N];
  for (int r = 0; r < R; ++r) {
    const V a = V::broadcast(alpha[r]);
    for (int n = 0; n < N; ++n) sum[r][n] = V::mul(V::load(o + r * stride + dim + kVectorFloats * n), a);
  }
  for (int slot = seen.begin; slot < seen.end; ++slot) {
    if constexpr (Rows::kAhead) {
      prefetch<V, N * kVectorFloats* int{sizeof(typename Rows::Element)}>(rows.value(slot, dim), rows.next);
    }
    V value[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) value[n] = rows.load_value(slot, dim + kVectorFloats * n);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const V weight = V::broadcast(p[r * kScoreStride + slot]);
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) sum[r][n] = V::fma(weight, value[n], sum[r][n]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < N; ++n) sum[r][n].store(o + r * stride + dim + kVectorFloats * n);
  }
}

template <class V, int R, class Rows>
void add_block(const Rows& rows, const float* p, SlotRange seen, const float* alpha, float* o, int stride) {
  constexpr int kWide = V::template tile_width<R>();
  int dim = 0;
  for (; dim + kWide * kVectorFloats <= stride; dim += kWide * kVectorFloats) {
    add_values<V, R, kWide>(rows, p, seen, alpha, dim, o, stride);
  }
  if constexpr (kWide > 2) {
    for (; dim + 2 * kVectorFloats <= stride; dim += 2 * kVectorFloats)
      add_values<V, R, 2>(rows, p, seen, alpha, dim, o, stride);
  }
  for (; dim < stride; dim += kVectorFloats) add_values<V, R, 1>(rows, p, seen, alpha, dim, o, stride);
}

// Hides the scores of what a row does not see; returns the greatest of the rest.
template <class V>
float hide_unseen(float* s, SlotRange seen, SlotRange step) {
  V greatest = V::broadcast(kMinusInfinity);
  for (int slot = step.begin / kVectorFloats * kVectorFloats; slot < step.end; slot += kVectorFloats) {
    V x = V::load(s + slot);
    if (slot < seen.begin || slot + kVectorFloats > seen.end) {
      x = V::keep(x, seen.begin - slot, seen.end - slot, kMinusInfinity);
      x.store(s + slot);
    }
    greatest = V::max(greatest, x);
  }
  return V::reduce_max(greatest);
}

// Turns a row's scores into p = 2^(s - m); returns their sum.
template <class V>
float exponentiate(float* s, SlotRange step, float m) {
  V sum = V::broadcast(0.0F);
  for (int slot = step.begin / kVectorFloats * kVectorFloats; slot < step.end; slot += kVectorFloats) {
    const V p = exp2(V::sub(V::load(s + slot), V::broadcast(m)));
    p.store(s + slot);
    sum = V::add(sum, p);
  }
  return V::reduce_add(sum);
}

// Whether the row is one of those that this form of the block is for.
template <class V>
bool is_asked(const TileRows& tile, const BlockView& block, int row) {
  return tile.positions[row] >= block.query_begin && tile.positions[row] < block.query_end;
}

// Copies a row's p; 0 for slots outside of what was computed.
template <class V>
void keep_weights(const float* s, SlotRange computed, float* out, int n_slots) {
  const int begin = computed.begin / kVectorFloats * kVectorFloats;
  for (int slot = 0; slot < n_slots; slot += kVectorFloats) {
    const V p = slot >= begin && slot < computed.end ? V::load(s + slot) : V::broadcast(0.0F);
    p.store(out + slot);
  }
}

// Softmax of one step's scores in place; updates m and l and says by which alpha O shrinks.
template <class V, int R>
void weigh_step(const TileRows& tile, const BlockView& block, int row, const SlotRange* seen, SlotRange step, float* s,
                float* alpha) {
  float* m = tile.m + row;
  float* l = tile.l + row;
  float sum[R] = {};
  float falls[kVectorFloats] = {};
  // Two short loops rather than one long: the processor then works on more rows at a time.
  for (int r = 0; r < R; ++r) {
    if (seen[r].begin >= seen[r].end) continue;
    const float greatest = hide_unseen<V>(s + r * kScoreStride, seen[r], step);
    const float m_new = greatest > m[r] ? greatest : m[r];
    falls[r] = m[r] - m_new;
    m[r] = m_new;
  }
  for (int r = 0; r < R; ++r) {
    if (seen[r].begin < seen[r].end) sum[r] = exponentiate<V>(s + r * kScoreStride, step, m[r]);
  }
  exp2(V::load(falls)).store(alpha);
  for (int r = 0; r < R; ++r) l[r] = l[r] * alpha[r] + sum[r];
  if (block.block_l == nullptr) return;
  for (int r = 0; r < R; ++r) {
    if (!is_asked<V>(tile, block, row + r)) continue;
    block.block_l[row + r] = sum[r];
    block.block_m[row + r] = seen[r].begin < seen[r].end ? m[r] : kMinusInfinity;
  }
  if (block.block_p == nullptr) return;
  for (int r = 0; r < R; ++r) {
    if (!is_asked<V>(tile, block, row + r)) continue;
    const SlotRange computed = seen[r].begin < seen[r].end ? step : SlotRange{0, 0};
    keep_weights<V>(s + r * kScoreStride, computed,
                    block.block_p + static_cast<std::ptrdiff_t>(row + r) * tile.key_stride, tile.key_stride);
  }
}

// Rows that see different slots: those that see the same go together, so that no row reads a value it does not see.
template <class V, int R, class Rows>
void add_uneven_block(const Rows& rows, const float* p, const SlotRange* seen, const float* alpha, float* o,
                      int stride) {
  int n = 0;
  for (int r = 0; r < R; r += n) {
    n = 1;
    while (r + n < R && seen[r + n].begin == seen[r].begin && seen[r + n].end == seen[r].end) ++n;
    if (seen[r].begin >= seen[r].end) continue;
    const float* p_run = p + r * kScoreStride;
    float* o_run = o + r * stride;
    if (n >= 4) {
      add_block<V, 4>(rows, p_run, seen[r], alpha + r, o_run, stride);
      n = 4;
    } else if (n >= 2) {
      add_block<V, 2>(rows, p_run, seen[r], alpha + r, o_run, stride);
      n = 2;
    } else {
      add_block<V, 1>(rows, p_run, seen[r], alpha + r, o_run, stride);
    }
  }
}

// What each row of a step sees of the block; returns what any of them sees.
template <class V, int R>
SlotRange find_seen(const TileRows& tile, const BlockView& block, int row, SlotRange* seen) {
  SlotRange any = {kMaxBlockKeys, 0};
  for (int r = 0; r < R; ++r) {
    const int slot = tile.positions[row + r] - block.begin;  // of the query itself
    int begin = tile.window > 0 ? slot - tile.window + 1 : 0;
    if (begin < 0) begin = 0;
    int end = slot + 1 < block.n_tokens ? slot + 1 : block.n_tokens;
    if (!is_asked<V>(tile, block, row + r)) end = 0;
    seen[r] = {begin, end};
    if (begin >= end) continue;
    if (begin < any.begin) any.begin = begin;
    if (end > any.end) any.end = end;
  }
  return any;
}

// Asks for one part in n_parts of the next frame; all at once would choke the memory pipeline.
template <class V>
void prefetch_part(const BlockView& block, int part, int n_parts) {
  if (block.next_frame == 0) return;
  const int n_bytes = (block.frame_bytes / n_parts + 63) / 64 * 64;
  const int end = n_bytes * (part + 1) < block.frame_bytes ? n_bytes * (part + 1) : block.frame_bytes;
  for (int i = n_bytes * part; i < end; i += 64) __builtin_prefetch(block.k + block.next_frame + i);
}

template <class V, int R, class Rows>
void attend_steps(const TileRows& tile, const BlockView& block, const Rows& rows) {
  alignas(64) float s[R * kScoreStride];
  alignas(64) float alpha[kVectorFloats];
  SlotRange seen[R];
  for (int row = 0; row < tile.n_rows; row += R) {
    if constexpr (!Rows::kAhead) prefetch_part<V>(block, row / R, tile.n_rows / R);
    const SlotRange any = find_seen<V, R>(tile, block, row, seen);
    if (any.begin < any.end) {
      const RowQueries<V, R> q = {tile.q + static_cast<std::ptrdiff_t>(row) * tile.head_dim_k};
      score_block<V, R>(rows, q, tile, any, s);
    }
    weigh_step<V, R>(tile, block, row, seen, any, s, alpha);
    bool even = true;
    for (int r = 0; r < R; ++r) even = even && seen[r].begin == any.begin && seen[r].end == any.end;
    float* o = tile.o + static_cast<std::ptrdiff_t>(row) * tile.value_stride;
    if (even) {
      add_block<V, R>(rows, s, any, alpha, o, tile.value_stride);
    } else {
      add_uneven_block<V, R>(rows, s, seen, alpha, o, tile.value_stride);
    }
  }
}

template <class V, class Rows>
void attend_rows(const TileRows& tile, const BlockView& block, const Rows& rows) {
  switch (tile.step_rows) {
    case 1: return attend_steps<V, 1>(tile, block, rows);
    case 2: return attend_steps<V, 2>(tile, block, rows);
    case 4: return attend_steps<V, 4>(tile, block, rows);
    case 6: return attend_steps<V, 6>(tile, block, rows);
    default: break;
  }
  if constexpr (V::kMaxRows >= 8) attend_steps<V, 8>(tile, block, rows);
}

// The slots that some row of the tile sees. Positions ascend over its rows.
template <class V>
SlotRange find_tile_seen(const TileRows& tile, const BlockView& block) {
  // Where only some rows are asked for, all the block: it is read once in this form.
  if (!is_asked<V>(tile, block, 0) || !is_asked<V>(tile, block, tile.n_rows - 1)) return {0, block.n_tokens};
  SlotRange first[1];
  SlotRange last[1];
  find_seen<V, 1>(tile, block, 0, first);
  find_seen<V, 1>(tile, block, tile.n_rows - 1, last);
  return {first[0].begin, last[0].end};
}

template <class V, class Rows>
void attend_packed(const TileRows& tile, const BlockView& block, const Rows& rows) {
  constexpr bool kIsFloat = sizeof(typename Rows::Element) == 4;
  const bool whole = Rows::kPadded || tile.head_dim_v % kVectorFloats == 0;
  // One step reads a block once: unpacking would only add stores. From the third on it saves conversions.
  if (whole && tile.n_rows <= 2 * tile.step_rows) return attend_rows<V>(tile, block, rows);
  if constexpr (kIsFloat) {
    if (whole) return attend_rows<V>(tile, block, rows.not_ahead());
  }
  attend_rows<V>(tile, block, unpack<V>(tile, rows, find_tile_seen<V>(tile, block)));
}

template <class V, class E>
void attend_plain(const TileRows& tile, const BlockView& block) {
  attend_packed<V>(tile, block, plain_rows<V, E>(tile, block));
}

template <class V>
void attend_scaled(const TileRows& tile, const BlockView& block) {
  attend_packed<V>(tile, block, scaled_rows<V>(tile, block));
}

template <class V>
void attend_sealed(const TileRows& tile, const BlockView& block) {
  attend_packed<V>(tile, block, sealed_rows<V>(tile, block));
}

template <class V, class Rows>
void score_diagonals(const TileRows& tile, const BlockView& block, const Rows& rows, float* scores) {
  for (int row = 0; row < tile.n_rows; row += kDiagonalRows) {
    const DiagonalQueries<V, kDiagonalRows> q = {tile.q +
                                                 static_cast<std::ptrdiff_t>(row) * tile.head_dim_k * kVectorFloats};
    score_block<V, kDiagonalRows>(rows, q, tile, {0, block.n_tokens}, scores + row * kScoreStride);
  }
}

template <class V, class E>
void score_plain(const TileRows& tile, const BlockView& block, float* scores) {
  score_diagonals<V>(tile, block, plain_rows<V, E>(tile, block), scores);
}

template <class V>
void score_scaled(const TileRows& tile, const BlockView& block, float* scores) {
  score_diagonals<V>(tile, block, scaled_rows<V>(tile, block), scores);
}

template <class V>
void score_sealed(const TileRows& tile, const BlockView& block, float* scores) {
  score_diagonals<V>(tile, block, sealed_rows<V>(tile, block), scores);
}

template <class V>
void exp2_in_place(float* x, std::int32_t n) {
  for (int i = 0; i < n; i += kVectorFloats) exp2(V::load(x + i)).store(x + i);
}

template <class V>
void add_slots(const float* p, float factor, float share, float* mass, std::int32_t n) {
  for (int i = 0; i < n; i += kVectorFloats) {
    const V shares = V::mul(V::mul(V::load(p + i), V::broadcast(factor)), V::broadcast(share));
    V::add(V::load(mass + i), shares).store(mass + i);
  }
}

template <class V>
void to_f16(const float* x, std::uint16_t* out, std::int32_t n) {
  int i = 0;
  for (; i + kVectorFloats <= n; i += kVectorFloats) V::store_f16(V::load(x + i), out + i);
  if (i == n) return;
  float part[kVectorFloats] = {};
  std::uint16_t part_out[kVectorFloats];
  for (int j = 0; i + j < n; ++j) part[j] = x[i + j];
  V::store_f16(V::load(part), part_out);
  for (int j = 0; i + j < n; ++j) out[i + j] = part_out[j];
}

template <class V>
void from_codes(const std::uint8_t* codes, float scale, float least, float* out, std::int32_t n) {
  for (int i = 0; i < n; i += kVectorFloats) {
    V::fma(V::load_codes(codes + i / 2), V::broadcast(scale), V::broadcast(least)).store(out + i);
  }
}

template <class V>
void from_f16(const std::uint16_t* x, float* out, std::int32_t n) {
  F16 part[kVectorFloats] = {};
  int i = 0;
  for (; i + kVectorFloats <= n; i += kVectorFloats) {
    for (int j = 0; j < kVectorFloats; ++j) part[j] = static_cast<F16>(x[i + j]);
    V::load(part).store(out + i);
  }
  if (i == n) return;
  float part_out[kVectorFloats];
  for (int j = 0; i + j < n; ++j) part[j] = static_cast<F16>(x[i + j]);
  V::load(part).store(part_out);
  for (int j = 0; i + j < n; ++j) out[i + j] = part_out[j];
}

}  // namespace ebb::kernel
