// KeyDigest: what is kept of a frame's keys beside its record, so that keys that left can be scored without reading them.
//
//   least    f16 [head_dim_k]   of each channel over the frame's tokens, rounded down: the box of Quest (arXiv 2406.10774)
//   range    a byte each        how far beyond that it reaches, rounded up by a sixteenth at most
//   radius   a byte each        mean distance of a channel from the middle of its box, in steps of it: ArkVale's cuboid-mean
//   sketch   2 bits a channel of some of the keys, [head_dim_k][n_slots / 4] bytes: which of four even steps of the range it is
//
// Keys as they lie, rotated for the anchor that their block had then. Those of the sketch lie farthest from the middle of the box: what
// is looked up by a query of its own differs from what stands about it. They are as many as bytes allow: all of the digest is at most
// kMostOfFrame of the frame, but for frames where half of the keys, or kLeastKeys, take more. Of frames of 64 tokens of 64 numbers each in
// f16 (16 KiB): the first three 256 bytes, 1.6 %, the sketch of 32 keys 512, 3.1 %.
//
// It reads frames and knows no blocks, sessions or queries. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/frame_layout.h"
#include "model/frame_rows.h"

namespace ebb {

// Of a frame's bytes.
inline constexpr double kMostOfFrame = 0.05;
inline constexpr std::int32_t kLeastKeys = 32;

// Where what is kept of a frame lies, in one run of bytes.
struct KeyDigestLayout {
  std::int32_t n_dims = 0;
  // Keys of the sketch, and the slots that it has for them, a multiple of kScoreLanes.
  std::int32_t n_keys = 0;
  std::int32_t n_slots = 0;

  static KeyDigestLayout of(const FrameLayout& layout);
  [[nodiscard]] std::size_t range_offset() const { return sizeof(std::uint16_t) * static_cast<std::size_t>(n_dims); }
  [[nodiscard]] std::size_t radius_offset() const { return range_offset() + static_cast<std::size_t>(n_dims); }
  [[nodiscard]] std::size_t sketch_offset() const { return radius_offset() + static_cast<std::size_t>(n_dims); }
  [[nodiscard]] std::size_t sketch_bytes() const {
    return static_cast<std::size_t>(n_dims) * static_cast<std::size_t>(n_slots) / 4;
  }
  [[nodiscard]] std::size_t bytes() const { return sketch_offset() + sketch_bytes(); }
};

// Channels as score kernels take them.
[[nodiscard]] std::size_t padded_dims(const KeyDigestLayout& layout);

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
// The same of the box: half of its width in place of the distance.
void read_half_box(const KeyDigestLayout& layout, std::span<const std::byte> digest, const KeyCuboid& box);
// What codes 0 to 3 of the sketch stand for: least + code * step, [n_dims] each.
struct KeySteps {
  std::span<float> least;
  std::span<float> step;
};
void read_steps(const KeyDigestLayout& layout, std::span<const std::byte> digest, const KeySteps& steps);
// Which keys of a frame its sketch has, in order; of the digest, the box is read.
[[nodiscard]] std::vector<std::size_t> sketched_keys(const KeyDigestLayout& layout, const FrameRows& keys,
                                                     std::span<const std::byte> digest);
// The keys that the sketch stands for, [n_dims][n_slots].
void read_sketch(const KeyDigestLayout& layout, std::span<const std::byte> digest, std::span<float> planes);

}  // namespace ebb
