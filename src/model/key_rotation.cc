#include "model/key_rotation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <ggml-backend.h>
#include <ggml.h>

#include "base/check.h"
#include "base/to_size.h"
#include "model/attention_work.h"
#include "model/model.h"
#include "model/row_convert.h"
#include "model/scaled_row.h"
#include "model/sealed_frame.h"

namespace ebb {
namespace {

constexpr std::int32_t kMaxKeys = kMaxBlockKeys;

// YaRN: 1 where the pair turns fast enough to be extrapolated, 0 where it is interpolated.
double yarn_mix(const Hparams& hparams, float freq_base, std::int32_t pair) {
  std::array<float, 2> range{};
  ggml_rope_yarn_corr_dims(hparams.n_rot, hparams.rope_orig_ctx, freq_base, hparams.yarn_beta_fast,
                           hparams.yarn_beta_slow, range.data());
  const double at = (pair - static_cast<double>(range[0])) / std::max(0.001, static_cast<double>(range[1] - range[0]));
  return (1.0 - std::clamp(at, 0.0, 1.0)) * static_cast<double>(hparams.yarn_ext_factor);
}

// The dimensions that pair i rotates.
struct Pair {
  std::int32_t x;
  std::int32_t y;
};
Pair pair_of(RopeKind kind, std::int32_t i, std::int32_t n_pairs) {
  return kind == RopeKind::kNeoX ? Pair{i, i + n_pairs} : Pair{2 * i, 2 * i + 1};
}

// One pair of n keys.
void turn_plane(float* x, float* y, std::int32_t n, float cosine, float sine) {
  for (std::int32_t i = 0; i < n; ++i) {
    const float x_before = x[i];
    const float y_before = y[i];
    x[i] = x_before * cosine - y_before * sine;
    y[i] = y_before * cosine + x_before * sine;
  }
}

// All pairs of one key.
void turn_row(const KeyRotation& rotation, float* row) {
  const auto n_pairs = static_cast<std::int32_t>(rotation.cosines.size());
  const float* const cosines = rotation.cosines.data();
  const float* const sines = rotation.sines.data();
  const std::int32_t step = rotation.kind == RopeKind::kNeoX ? 1 : 2;
  float* const other = row + pair_of(rotation.kind, 0, n_pairs).y;
  for (std::int32_t i = 0; i < n_pairs; ++i) {
    const float x = row[i * step];
    const float y = other[i * step];
    row[i * step] = x * cosines[i] - y * sines[i];
    other[i * step] = y * cosines[i] + x * sines[i];
  }
}

class FrameTurner {
 public:
  FrameTurner(const FrameLayout& layout, const KeyRotation& rotation, std::byte* frame)
      : layout_(layout),
        rotation_(rotation),
        frame_(frame),
        kernels_(current_kernels()),
        n_pairs_(static_cast<std::int32_t>(rotation.cosines.size())) {}

  void turn(std::int32_t n_tokens) const {
    if (layout_.seals()) return turn_sealed();
    if (layout_.row_type != RowType::kQ8_0 && layout_.key_order == KeyOrder::kByDim) return turn_planes(n_tokens);
    for (std::int32_t slot = 0; slot < n_tokens; ++slot) {
      if (layout_.row_type == RowType::kQ8_0) {
        turn_scaled(scaled_key(layout_, frame_, to_size(slot)));
      } else {
        turn_plain(to_size(slot));
      }
    }
  }

 private:
  // By dimension, all keys of a block share the angle of a pair of planes.
  void turn_planes(std::int32_t n_tokens) const {
    const std::size_t plane_bytes = to_size(layout_.key_stride()) * layout_.element_bytes();
    std::array<float, kMaxKeys> x;
    std::array<float, kMaxKeys> y;
    for (std::int32_t i = 0; i < n_pairs_; ++i) {
      const Pair pair = pair_of(rotation_.kind, i, n_pairs_);
      std::byte* const x_plane = frame_ + layout_.k_offset() + to_size(pair.x) * plane_bytes;
      std::byte* const y_plane = frame_ + layout_.k_offset() + to_size(pair.y) * plane_bytes;
      read_elements(kernels_, layout_.row_type, x_plane, n_tokens, x.data());
      read_elements(kernels_, layout_.row_type, y_plane, n_tokens, y.data());
      turn_plane(x.data(), y.data(), n_tokens, rotation_.cosines[to_size(i)], rotation_.sines[to_size(i)]);
      write_elements(kernels_, layout_.row_type, x.data(), n_tokens, x_plane);
      write_elements(kernels_, layout_.row_type, y.data(), n_tokens, y_plane);
    }
  }

  void turn_sealed() const {
    std::array<float, kMaxKeys> x;
    std::array<float, kMaxKeys> y;
    for (std::int32_t i = 0; i < n_pairs_; ++i) {
      const Pair pair = pair_of(rotation_.kind, i, n_pairs_);
      read_sealed_keys(layout_, kernels_, frame_, pair.x, x.data());
      read_sealed_keys(layout_, kernels_, frame_, pair.y, y.data());
      turn_plane(x.data(), y.data(), layout_.block_size, rotation_.cosines[to_size(i)], rotation_.sines[to_size(i)]);
      write_sealed_keys(layout_, kernels_, frame_, pair.x, x.data());
      write_sealed_keys(layout_, kernels_, frame_, pair.y, y.data());
    }
  }

  void turn_plain(std::size_t slot) const {
    std::array<float, kMaxHeadDim> row;
    std::byte* const bytes = frame_ + layout_.k_offset() + slot * to_size(layout_.head_dim_k) * layout_.element_bytes();
    read_elements(kernels_, layout_.row_type, bytes, 2 * n_pairs_, row.data());
    turn_row(rotation_, row.data());
    write_elements(kernels_, layout_.row_type, row.data(), 2 * n_pairs_, bytes);
  }

  void turn_scaled(const ScaledRow<std::byte>& key) const {
    const std::size_t n_groups = to_size((2 * n_pairs_ + kScaleGroup - 1) / kScaleGroup);
    std::array<float, kMaxHeadDim> row;
    std::array<std::uint16_t, kMaxHeadDim / kScaleGroup> packed_scales;
    std::array<float, kMaxHeadDim / kScaleGroup> scales;
    read_scaled(kernels_, key, n_groups, row.data());
    turn_row(rotation_, row.data());
    for (std::size_t g = 0; g < n_groups; ++g) {
      std::array<std::int8_t, kScaleGroup> group;
      scales[g] = quantise_group(row.data() + g * kScaleGroup, group.data());
      std::byte* const elements = key.elements + g * key.group_stride;
      for (std::size_t d = 0; d < group.size(); ++d) elements[d * key.dim_stride] = static_cast<std::byte>(group[d]);
    }
    kernels_.to_f16(scales.data(), packed_scales.data(), static_cast<std::int32_t>(n_groups));
    for (std::size_t g = 0; g < n_groups; ++g) {
      std::memcpy(key.scales + g * key.scale_stride, &packed_scales[g], kScaleBytes);
    }
  }

  const FrameLayout& layout_;
  const KeyRotation& rotation_;
  std::byte* const frame_;
  const AttentionKernels& kernels_;
  const std::int32_t n_pairs_;
};

std::vector<float> factors_of(const ggml_tensor* tensor) {
  if (tensor == nullptr) return {};
  std::vector<float> factors(to_size(static_cast<std::int32_t>(ggml_nelements(tensor))));
  ggml_backend_tensor_get(tensor, factors.data(), 0, factors.size() * sizeof(float));
  return factors;
}

}  // namespace

RopeFrequencies rope_frequencies(const Hparams& hparams, RopeKind kind, LayerIndex layer,
                                 std::span<const float> factors) {
  const auto n_pairs = hparams.n_rot / 2;
  EBB_CHECK(factors.empty() || factors.size() == to_size(n_pairs), "{} factors for {} pairs", factors.size(), n_pairs);
  // ggml multiplies by this float from pair to pair, and so do all its angles.
  const float step = std::pow(hparams.freq_base(layer), -2.0F / static_cast<float>(hparams.n_rot));
  const auto interpolated = static_cast<double>(hparams.freq_scale(layer));
  RopeFrequencies frequencies{.kind = kind, .per_anchor = {}};
  for (std::int32_t i = 0; i < n_pairs; ++i) {
    const double factor = factors.empty() ? 1.0 : static_cast<double>(factors[to_size(i)]);
    const double mix = hparams.yarn_ext_factor == 0.0F ? 0.0 : yarn_mix(hparams, hparams.freq_base(layer), i);
    const double scale = interpolated * (1.0 - mix) + mix;
    frequencies.per_anchor.push_back(std::pow(static_cast<double>(step), i) / factor * scale);
  }
  return frequencies;
}

std::vector<RopeFrequencies> layer_frequencies(const Model& model) {
  std::vector<RopeFrequencies> layers;
  for (std::int32_t l = 0; l < model.hparams().n_layers; ++l) {
    const LayerIndex layer(l);
    const std::vector<float> factors = factors_of(model.weights().layers[layer.index()].rope_factors);
    layers.push_back(rope_frequencies(model.hparams(), model.architecture().rope, layer, factors));
  }
  return layers;
}

// As ggml_rope_ext does: its own part comes with the extrapolation.
double rope_magnitude(const Hparams& hparams, LayerIndex layer) {
  const auto given = static_cast<double>(hparams.yarn_attn_factor);
  if (hparams.yarn_ext_factor == 0.0F) return given;
  return given * (1.0 + 0.1 * std::log(1.0 / static_cast<double>(hparams.freq_scale(layer))));
}

KeyRotation make_key_rotation(const RopeFrequencies& frequencies, std::int32_t n_anchors) {
  KeyRotation rotation{.kind = frequencies.kind, .cosines = {}, .sines = {}};
  for (const double radians : frequencies.per_anchor) {
    rotation.cosines.push_back(static_cast<float>(std::cos(radians * n_anchors)));
    rotation.sines.push_back(static_cast<float>(std::sin(radians * n_anchors)));
  }
  return rotation;
}

// Of n angles w apart the mean of exp(i angle) points to the middle one, and is sin(n w / 2) / (n sin(w / 2)) long.
KeyRotation make_mean_rotation(const RopeFrequencies& frequencies, Position first, std::int32_t n_anchors) {
  EBB_CHECK(n_anchors > 0, "the mean of {} rotations", n_anchors);
  KeyRotation rotation{.kind = frequencies.kind, .cosines = {}, .sines = {}};
  for (const double radians : frequencies.per_anchor) {
    const double n = n_anchors;
    const double step = std::sin(radians / 2.0);
    // Where whole turns lie between anchors all of them are the same.
    const double length =
        std::abs(step) < 1e-12 ? std::cos((n - 1.0) * radians / 2.0) : std::sin(n * radians / 2.0) / (n * step);
    const double middle = radians * (first.value() + (n - 1.0) / 2.0);
    rotation.cosines.push_back(static_cast<float>(length * std::cos(middle)));
    rotation.sines.push_back(static_cast<float>(length * std::sin(middle)));
  }
  return rotation;
}

void rotate_row(const KeyRotation& rotation, std::span<float> row) {
  EBB_CHECK(2 * rotation.cosines.size() <= row.size(), "{} pairs rotate in a row of {}", rotation.cosines.size(),
            row.size());
  turn_row(rotation, row.data());
}

void rotate_keys(const FrameLayout& layout, const KeyRotation& rotation, std::int32_t n_tokens,
                 std::span<std::byte> frame) {
  EBB_CHECK(frame.size() == layout.frame_bytes(), "a frame of {} bytes, not {}", frame.size(), layout.frame_bytes());
  EBB_CHECK(n_tokens >= 0 && n_tokens <= layout.block_size, "{} tokens in a block of {}", n_tokens, layout.block_size);
  EBB_CHECK(2 * rotation.cosines.size() <= to_size(layout.head_dim_k), "{} pairs rotate in keys of {} dimensions",
            rotation.cosines.size(), layout.head_dim_k);
  const auto is_one = [](float cosine) { return cosine == 1.0F; };
  const auto is_zero = [](float sine) { return sine == 0.0F; };
  // Not only faster: x * 1 - y * 0 may lose the sign of a zero, and is no number where y is infinite.
  if (std::ranges::all_of(rotation.cosines, is_one) && std::ranges::all_of(rotation.sines, is_zero)) return;
  FrameTurner(layout, rotation, frame.data()).turn(n_tokens);
}

BlockMover::BlockMover(const Model& model, const FrameLayout& layout)
    : layout_(layout), n_kv_heads_(model.hparams().n_kv_heads) {
  for (RopeFrequencies& own : layer_frequencies(model)) {
    const auto known = std::ranges::find(frequencies_, own);
    of_layer_.push_back(static_cast<std::size_t>(known - frequencies_.begin()));
    if (known == frequencies_.end()) frequencies_.push_back(std::move(own));
  }
}

void BlockMover::move(std::span<std::byte> frames, const HeadSet& heads, std::int32_t n_tokens,
                      std::int32_t n_anchors) const {
  move_frames(layout_, frames, heads, n_tokens, n_anchors);
}

void BlockMover::move_open(std::span<std::byte> frames, const HeadSet& heads, std::int32_t n_tokens,
                           std::int32_t n_anchors) const {
  move_frames(layout_.open_layout(), frames, heads, n_tokens, n_anchors);
}

void BlockMover::move_frames(const FrameLayout& layout, std::span<std::byte> frames, const HeadSet& heads,
                             std::int32_t n_tokens, std::int32_t n_anchors) const {
  const std::size_t frame_bytes = layout.frame_bytes();
  EBB_CHECK(heads.n_heads() == of_layer_.size() * to_size(n_kv_heads_) &&
                frames.size() == to_size(heads.count()) * frame_bytes,
            "{} bytes for {} of {} frames of {}", frames.size(), heads.count(), heads.n_heads(), frame_bytes);
  if (n_anchors == 0) return;
  std::vector<KeyRotation> rotations;
  for (const RopeFrequencies& own : frequencies_) rotations.push_back(make_key_rotation(own, n_anchors));
  heads.for_each([&](std::size_t head) {
    rotate_keys(layout, rotations[of_layer_[head / to_size(n_kv_heads_)]], n_tokens, frames.first(frame_bytes));
    frames = frames.subspan(frame_bytes);
  });
}

}  // namespace ebb
