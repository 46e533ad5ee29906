// KeyDigest: what is kept of a frame's keys beside its record, so that keys that left can be scored without reading them.
//
//   least, range   f16 [head_dim_k] each   of each channel over the frame's tokens: the box of Quest (arXiv 2406.10774)
//   radius         f16 [head_dim_k]        mean distance of a channel from the middle of its box: ArkVale's cuboid-mean
//   sketch         2 bits a key and channel, [head_dim_k][key_stride / 4] bytes: which of four even steps of the range it is
//
// Keys as they lie, rotated for the anchor that their block had then. Bytes, of frames of 64 tokens of 64 numbers each in f16
// (16 KiB): the first three 384, 2.3 %, the sketch 1024, 6.3 %.
//
// It reads frames and knows no blocks, sessions or queries. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cache/frame_layout.h"
#include "model/frame_rows.h"

namespace ebb {

// Where what is kept of a frame lies, in one run of bytes.
struct KeyDigestLayout {
  std::int32_t n_dims = 0;
  // Of a full block, and the slots that the sketch has for them (FrameLayout::key_stride).
  std::int32_t n_keys = 0;
  std::int32_t n_slots = 0;

  static KeyDigestLayout of(const FrameLayout& layout) {
    return {.n_dims = layout.head_dim_k, .n_keys = layout.block_size, .n_slots = layout.key_stride()};
  }
  // One of least, range and radius.
  [[nodiscard]] std::size_t channel_bytes() const { return sizeof(std::uint16_t) * static_cast<std::size_t>(n_dims); }
  [[nodiscard]] std::size_t sketch_offset() const { return 3 * channel_bytes(); }
  [[nodiscard]] std::size_t sketch_bytes() const {
    return static_cast<std::size_t>(n_dims) * static_cast<std::size_t>(n_slots) / 4;
  }
  [[nodiscard]] std::size_t bytes() const { return sketch_offset() + sketch_bytes(); }
};

// Of the keys of a full frame. `out` is layout.bytes() long.
void write_key_digest(const KeyDigestLayout& layout, const FrameRows& keys, std::span<std::byte> out);

// --- back ---
// The box: [n_dims] each.
struct KeyBox {
  std::span<float> least;
  std::span<float> greatest;
};
void read_box(const KeyDigestLayout& layout, std::span<const std::byte> digest, const KeyBox& box);
// The middle of each channel of the box, and the mean distance from it.
struct KeyCuboid {
  std::span<float> middle;
  std::span<float> radius;
};
void read_cuboid(const KeyDigestLayout& layout, std::span<const std::byte> digest, const KeyCuboid& cuboid);
// What codes 0 to 3 of the sketch stand for: least + code * step, [n_dims] each.
struct KeySteps {
  std::span<float> least;
  std::span<float> step;
};
void read_steps(const KeyDigestLayout& layout, std::span<const std::byte> digest, const KeySteps& steps);
// The keys that the sketch stands for, [n_dims][n_slots].
void read_sketch(const KeyDigestLayout& layout, std::span<const std::byte> digest, std::span<float> planes);

}  // namespace ebb
