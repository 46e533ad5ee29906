// How the attention kernels read a block: elements of every row type as vectors of floats, in place or unpacked.
//
// Part of the kernels' body: see attention_kernel_body.h for V and for why nothing here calls the standard library.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/attention_kernel.h"

namespace ebb::kernel {

// Elements of frames, told apart by type.
enum class F16 : std::uint16_t {};
enum class BF16 : std::uint16_t {};

inline constexpr int kVectorFloats = 16;
inline constexpr int kGroup = 32;  // dimensions that share a q8_0 scale

// The slots [begin, end) of a block that a row sees.
struct SlotRange {
  int begin;
  int end;
};

// How K and V rows are read. Plain: the element is the value. `next` is the way to the same byte of the next frame.
// kAhead: every load also asks for the same byte of the next frame; right when a block is read about once.
template <class V, class E, bool ahead>
struct PlainRows {
  using Element = E;
  static constexpr bool kScaled = false;
  static constexpr bool kAhead = ahead;
  static constexpr bool kPadded = false;

  const E* k;
  const E* v;
  int key_stride;
  int value_stride;
  std::ptrdiff_t next;

  PlainRows<V, E, false> not_ahead() const { return {k, v, key_stride, value_stride, 0}; }
  const E* key(int d, int slot) const { return k + static_cast<std::ptrdiff_t>(d) * key_stride + slot; }
  const E* value(int slot, int dim) const { return v + static_cast<std::ptrdiff_t>(slot) * value_stride + dim; }
  V load_key(int d, int slot) const { return V::load(key(d, slot)); }
  V load_key_scale(int, int) const { return V::broadcast(1.0F); }
  V load_value(int slot, int dim) const { return V::load(value(slot, dim)); }
  V load_value_part(int slot, int dim, int n) const {
    E part[kVectorFloats] = {};
    for (int i = 0; i < n; ++i) part[i] = value(slot, dim)[i];
    return V::load(part);
  }
};

// q8_0: int8 times the f16 scale of its group of dimensions. The product is exact in f32.
template <class V>
struct ScaledRows {
  using Element = std::int8_t;
  static constexpr bool kScaled = true;
  static constexpr bool kAhead = true;
  static constexpr bool kPadded = false;

  const std::int8_t* k;
  const F16* k_scales;
  const std::int8_t* v;
  const F16* v_scales;
  int key_stride;
  int value_stride;
  std::ptrdiff_t next;

  const std::int8_t* key(int d, int slot) const { return k + static_cast<std::ptrdiff_t>(d) * key_stride + slot; }
  const std::int8_t* value(int slot, int dim) const {
    return v + static_cast<std::ptrdiff_t>(slot) * value_stride + dim;
  }
  V load_key(int d, int slot) const { return V::load(key(d, slot)); }
  V load_key_scale(int d, int slot) const {
    return V::load(k_scales + static_cast<std::ptrdiff_t>(d / kGroup) * key_stride + slot);
  }
  V load_value(int slot, int dim) const {
    const F16* scales = v_scales + static_cast<std::ptrdiff_t>(slot) * (value_stride / kGroup);
    return V::mul(V::load(value(slot, dim)), V::broadcast(scales + dim / kGroup));
  }
  V load_value_part(int slot, int dim, int) const { return load_value(slot, dim); }  // whole groups only
};

// A sealed block: code * scale + least, rounded once. K has a scale and a least for each dimension, V for each run of
// dimensions of a token (cache/frame_layout.h).
template <class V>
struct SealedRows {
  using Element = std::uint8_t;
  static constexpr bool kScaled = false;
  static constexpr bool kAhead = false;
  static constexpr bool kPadded = true;

  const std::uint8_t* k;
  const F16* k_scales;
  const std::uint8_t* v;
  const F16* v_scales;
  int head_dim_k;
  int value_runs;
  int key_stride;
  int value_stride;

  V load_key(int d, int slot) const {
    const V codes = V::load_codes(k + (static_cast<std::ptrdiff_t>(d) * key_stride + slot) / 2);
    return V::fma(codes, V::broadcast(k_scales + d), V::broadcast(k_scales + head_dim_k + d));
  }
  V load_key_scale(int, int) const { return V::broadcast(1.0F); }
  V load_value(int slot, int dim) const {
    const F16* scales = v_scales + static_cast<std::ptrdiff_t>(slot) * 2 * value_runs + dim / kGroup;
    const V codes = V::load_codes(v + (static_cast<std::ptrdiff_t>(slot) * value_stride + dim) / 2);
    return V::fma(codes, V::broadcast(scales), V::broadcast(scales + value_runs));
  }
  V load_value_part(int slot, int dim, int) const { return load_value(slot, dim); }  // codes past the end are 0
};

// The rows of a block.
template <class V, class E>
PlainRows<V, E, true> plain_rows(const TileRows& tile, const BlockView& block) {
  return {reinterpret_cast<const E*>(block.k), reinterpret_cast<const E*>(block.v), tile.key_stride, tile.head_dim_v,
          block.next_frame};
}

template <class V>
ScaledRows<V> scaled_rows(const TileRows& tile, const BlockView& block) {
  return {reinterpret_cast<const std::int8_t*>(block.k),
          reinterpret_cast<const F16*>(block.k_scales),
          reinterpret_cast<const std::int8_t*>(block.v),
          reinterpret_cast<const F16*>(block.v_scales),
          tile.key_stride,
          tile.head_dim_v,
          block.next_frame};
}

template <class V>
SealedRows<V> sealed_rows(const TileRows& tile, const BlockView& block) {
  return {reinterpret_cast<const std::uint8_t*>(block.k),
          reinterpret_cast<const F16*>(block.k_scales),
          reinterpret_cast<const std::uint8_t*>(block.v),
          reinterpret_cast<const F16*>(block.v_scales),
          tile.head_dim_k,
          (tile.head_dim_v + kGroup - 1) / kGroup,
          tile.key_stride,
          tile.value_stride};
}

// Asks for the cache lines of `n_bytes` at `address`, in the next frame.
template <class V, int n_bytes>
void prefetch(const void* address, std::ptrdiff_t next) {
  for (int i = 0; i < n_bytes; i += 64) __builtin_prefetch(static_cast<const char*>(address) + next + i);
}

template <class V, class E, bool ahead>
void unpack_keys(const TileRows& tile, const PlainRows<V, E, ahead>& rows) {
  const std::ptrdiff_t n = static_cast<std::ptrdiff_t>(tile.head_dim_k) * tile.key_stride;
  for (std::ptrdiff_t i = 0; i < n; i += kVectorFloats) V::load(rows.k + i).store(tile.unpacked_k + i);
}

template <class V>
void unpack_keys(const TileRows& tile, const ScaledRows<V>& rows) {
  for (int d = 0; d < tile.head_dim_k; ++d) {
    float* const out = tile.unpacked_k + static_cast<std::ptrdiff_t>(d) * tile.key_stride;
    for (int slot = 0; slot < tile.key_stride; slot += kVectorFloats) {
      V::mul(V::load(rows.key(d, slot)), rows.load_key_scale(d, slot)).store(out + slot);
    }
  }
}

template <class V>
void unpack_keys(const TileRows& tile, const SealedRows<V>& rows) {
  for (int d = 0; d < tile.head_dim_k; ++d) {
    float* const out = tile.unpacked_k + static_cast<std::ptrdiff_t>(d) * tile.key_stride;
    for (int slot = 0; slot < tile.key_stride; slot += kVectorFloats) rows.load_key(d, slot).store(out + slot);
  }
}

template <class V, class Rows>
void unpack_values(const TileRows& tile, const Rows& rows, SlotRange seen) {
  const int n_whole = tile.head_dim_v / kVectorFloats * kVectorFloats;
  for (int slot = seen.begin; slot < seen.end; ++slot) {
    float* const out = tile.unpacked_v + static_cast<std::ptrdiff_t>(slot) * tile.value_stride;
    for (int dim = 0; dim < n_whole; dim += kVectorFloats) rows.load_value(slot, dim).store(out + dim);
    if (n_whole < tile.head_dim_v) rows.load_value_part(slot, n_whole, tile.head_dim_v - n_whole).store(out + n_whole);
  }
}

// Copies the keys of a block and the values that the tile sees to f32, as they are read in place, so that bits do not
// depend on who unpacks.
template <class V, class Rows>
PlainRows<V, float, false> unpack(const TileRows& tile, const Rows& rows, SlotRange seen) {
  unpack_keys<V>(tile, rows);
  unpack_values<V>(tile, rows, seen);
  return {tile.unpacked_k, tile.unpacked_v, tile.key_stride, tile.value_stride, 0};
}

}  // namespace ebb::kernel
