// Key rotation: moves saved keys to another anchor.
//
// Keys lie in frames rotated for their anchors. A rotation by a then by d is one by a + d, so that a block moves by
// turning each of its K rows once by the difference; V has no rotation and is never touched. It works on the bytes of
// frames as they are saved, on the host, and does not know sessions, residency or why a block moves.
//
//   angle of pair i, per anchor   w_i = base^(-2 i / n_rot) / factor_i, scaled linearly or by YaRN's mix, as in ggml
//   pair i of a rotated row       x' = x cos(d w_i) - y sin(d w_i),   y' = y cos(d w_i) + x sin(d w_i)
//
// Angles are linear in the anchor under every scaling that ebb reads, so only the difference counts. YaRN's magnitude
// is in the keys already and is not applied again. Angles are computed in float64 from the frequencies that ggml steps
// through in float32, so that a key moved by millions of anchors still agrees with one computed there, as far as ggml's
// own float32 angles do (their rounding grows with the anchor: 1e-3 of a radian at 10 000).
//
// What it costs: the result is rounded to the row type again. With f32 that is the last bit; with f16, bf16 and q8_0 a
// move LOSES up to half a unit of the element (of the group's scale in q8_0), each time; with kivi4 half a scale of
// each dimension's run, where 15 scales make up the whole range. Of quantised types (is_quantised) users are told.
// Moving back does not give the old bytes: move from the saved bytes of the original anchor, not from moved ones. A
// difference of 0 changes no byte, and the same bytes and difference give the same bytes with every kernel set.
//
// Thread rule: all const functions may run at once on different frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "cache/frame_layout.h"
#include "cache/head_set.h"
#include "model/hparams.h"

namespace ebb {

class Model;

// How the keys of a layer are rotated.
struct RopeFrequencies {
  RopeKind kind = RopeKind::kNeoX;
  // Radians per anchor of each pair, [n_rot / 2].
  std::vector<double> per_anchor;

  friend bool operator==(const RopeFrequencies&, const RopeFrequencies&) = default;
};

// `factors`: Llama 3's divisors, [n_rot / 2], or empty.
[[nodiscard]] RopeFrequencies rope_frequencies(const Hparams& hparams, RopeKind kind, LayerIndex layer,
                                               std::span<const float> factors);

// That of each layer, with the factors that the model's file has.
[[nodiscard]] std::vector<RopeFrequencies> layer_frequencies(const Model& model);
// By what ggml multiplies what it rotates in a layer: 1, or YaRN's magnitude.
[[nodiscard]] double rope_magnitude(const Hparams& hparams, LayerIndex layer);

// A rotation by one difference of anchors; [n_rot / 2] each.
struct KeyRotation {
  RopeKind kind = RopeKind::kNeoX;
  std::vector<float> cosines;
  std::vector<float> sines;
};
[[nodiscard]] KeyRotation make_key_rotation(const RopeFrequencies& frequencies, std::int32_t n_anchors);
// What rotating for each of n_anchors from `first` on gives on average: shorter than what is turned, the faster a pair turns.
[[nodiscard]] KeyRotation make_mean_rotation(const RopeFrequencies& frequencies, Position first,
                                             std::int32_t n_anchors);
// One row of floats, in place; at least 2 * n_pairs of them.
void rotate_row(const KeyRotation& rotation, std::span<float> row);

// Turns the keys in slots [0, n_tokens) of one frame, in place; of a sealed frame all of them. What is not rotated in a
// row (past n_rot), later slots and V keep their bytes.
void rotate_keys(const FrameLayout& layout, const KeyRotation& rotation, std::int32_t n_tokens,
                 std::span<std::byte> frame);

// Moves whole blocks of one model.
class BlockMover {
 public:
  // Keeps nothing of the model.
  BlockMover(const Model& model, const FrameLayout& layout);

  // `frames`: those of one block in these heads, by rising head, as FrameMemory::read() gives them, one after the
  // other. Its keys were rotated for some anchor, and are then for one n_anchors later (earlier if negative).
  void move(std::span<std::byte> frames, const HeadSet& heads, std::int32_t n_tokens, std::int32_t n_anchors) const;
  // Moves the keys of open frames likewise, of a layout that seals.
  void move_open(std::span<std::byte> frames, const HeadSet& heads, std::int32_t n_tokens,
                 std::int32_t n_anchors) const;

 private:
  void move_frames(const FrameLayout& layout, std::span<std::byte> frames, const HeadSet& heads, std::int32_t n_tokens,
                   std::int32_t n_anchors) const;

  FrameLayout layout_;
  std::int32_t n_kv_heads_;
  // Those that differ, and which of them each layer has.
  std::vector<RopeFrequencies> frequencies_;
  std::vector<std::size_t> of_layer_;
};

}  // namespace ebb
