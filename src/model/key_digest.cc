#include "model/key_digest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include <ggml.h>

#include "base/status.h"
#include "base/to_size.h"
#include "model/score_kernels.h"

namespace ebb {
namespace {

// A range's byte is a half without its sign, its first exponent bit and its lowest ones, of so many: up to 1984, a sixteenth off at most, below
// 1/16 by 1/256.
constexpr float kRangeUnit = 1024.0F;
constexpr unsigned kDroppedBits = 6;
// What is larger is taken for this, so that a byte can tell the range of any box. No model is known whose keys are half of it.
constexpr float kMostKey = 990.0F;
constexpr float kMostByte = 255.0F;
constexpr std::int32_t kSteps = 3;  // between four levels

using Channels = std::array<float, kMaxHeadDim>;
using Halves = std::array<std::uint16_t, kMaxHeadDim>;

std::uint16_t half_below(float x) {
  const std::uint16_t half = ggml_fp32_to_fp16(x);
  if (ggml_fp16_to_fp32(half) <= x) return half;
  constexpr std::uint16_t kSign = 0x8000;
  if (half == 0) return kSign | 1U;
  return static_cast<std::uint16_t>((half & kSign) != 0 ? half + 1 : half - 1);
}

// Of a number that is not negative.
std::byte byte_above(float x) {
  const float units = x / kRangeUnit;
  const std::uint16_t half = ggml_fp32_to_fp16(units);
  const unsigned above = ggml_fp16_to_fp32(half) < units ? half + 1U : half;
  return static_cast<std::byte>((above + (1U << kDroppedBits) - 1) >> kDroppedBits);
}

void read_least(std::span<const std::byte> digest, std::span<float> x) {
  Halves halves;
  std::memcpy(halves.data(), digest.data(), x.size() * sizeof(std::uint16_t));
  score_kernels().widen_halves(halves.data(), x.size(), x.data());
}

void read_range(const KeyDigestLayout& layout, std::span<const std::byte> digest, std::span<float> x) {
  Halves halves;
  const std::byte* in = digest.data() + layout.range_offset();
  for (std::size_t d = 0; d < x.size(); ++d) {
    halves[d] = static_cast<std::uint16_t>(std::to_integer<unsigned>(in[d]) << kDroppedBits);
  }
  score_kernels().widen_halves(halves.data(), x.size(), x.data());
  for (float& range : x) range *= kRangeUnit;
}

float within(float x) {
  // What is no number is as what is small.
  return x > -kMostKey ? std::min(x, kMostKey) : -kMostKey;
}

// What the sketch's steps are reckoned from is what is written, so that who reads it has the same.
void write_ranges(const KeyDigestLayout& layout, const FrameRows& keys, std::span<std::byte> out) {
  const std::size_t n_dims = keys.n_dims();
  Channels least;
  Channels greatest;
  least.fill(kMostKey);
  greatest.fill(-kMostKey);
  for (std::size_t slot = 0; slot < keys.n_tokens(); ++slot) {
    const std::span<const float> key = keys.row(slot);
    for (std::size_t d = 0; d < n_dims; ++d) {
      least[d] = std::min(least[d], within(key[d]));
      greatest[d] = std::max(greatest[d], within(key[d]));
    }
  }
  for (std::size_t d = 0; d < n_dims; ++d) {
    const std::uint16_t half = half_below(least[d]);
    std::memcpy(out.data() + sizeof(half) * d, &half, sizeof(half));
    least[d] = ggml_fp16_to_fp32(half);
    out[layout.range_offset() + d] = byte_above(greatest[d] - least[d]);
  }
  Channels range;
  read_range(layout, out, std::span(range).first(n_dims));
  for (std::size_t d = 0; d < n_dims; ++d) {
    const double radius = 0.5 * double{range[d]};
    const double middle = double{least[d]} + radius;
    double sum = 0.0;
    for (std::size_t slot = 0; slot < keys.n_tokens(); ++slot) {
      sum += std::abs(double{within(keys.row(slot)[d])} - middle);
    }
    const double mean = sum / static_cast<double>(keys.n_tokens());
    const double steps = radius > 0.0 ? std::round(double{kMostByte} * std::min(mean / radius, 1.0)) : 0.0;
    out[layout.radius_offset() + d] = static_cast<std::byte>(steps);
  }
}

void write_sketch(const KeyDigestLayout& layout, const FrameRows& keys, std::span<std::byte> out) {
  Channels least;
  Channels range;
  const std::size_t n_dims = keys.n_dims();
  read_least(out, std::span(least).first(n_dims));
  read_range(layout, out, std::span(range).first(n_dims));
  const std::vector<std::size_t> sketched = sketched_keys(layout, keys, out);
  const std::size_t quarter = to_size(layout.n_slots) / 4;
  std::byte* codes = out.data() + layout.sketch_offset();
  std::fill_n(codes, layout.sketch_bytes(), std::byte{0});
  for (std::size_t d = 0; d < n_dims; ++d, codes += quarter) {
    const float per_step = range[d] > 0.0F ? static_cast<float>(kSteps) / range[d] : 0.0F;
    for (std::size_t i = 0; i < sketched.size(); ++i) {
      const float key = within(keys.row(sketched[i])[d]);
      const float x = std::clamp((key - least[d]) * per_step, 0.0F, static_cast<float>(kSteps));
      const auto code = static_cast<unsigned>(std::lround(x));
      codes[i % quarter] |= static_cast<std::byte>(code << (2 * (i / quarter)));
    }
  }
}

}  // namespace

KeyDigestLayout KeyDigestLayout::of(const FrameLayout& layout) {
  KeyDigestLayout digest{.n_dims = layout.head_dim_k};
  const double n_left =
      kMostOfFrame * static_cast<double>(layout.frame_bytes()) - static_cast<double>(digest.sketch_offset());
  const double per_key = layout.head_dim_k / 4.0;
  constexpr auto kLanes = static_cast<std::int32_t>(kScoreLanes);
  const std::int32_t n_slots = (layout.block_size + kLanes - 1) / kLanes * kLanes;
  const auto n_fit = static_cast<std::int32_t>(std::max(n_left, 0.0) / per_key) / kLanes * kLanes;
  const std::int32_t n_least = std::max(kLeastKeys, (layout.block_size / 2 + kLanes - 1) / kLanes * kLanes);
  digest.n_slots = std::min(std::max(n_fit, n_least), n_slots);
  digest.n_keys = std::min(digest.n_slots, layout.block_size);
  return digest;
}

std::size_t padded_dims(const KeyDigestLayout& layout) {
  return (to_size(layout.n_dims) + kScoreLanes - 1) / kScoreLanes * kScoreLanes;
}

std::vector<std::size_t> sketched_keys(const KeyDigestLayout& layout, const FrameRows& keys,
                                       std::span<const std::byte> digest) {
  const std::size_t n_dims = keys.n_dims();
  Channels middle;
  Channels radius;
  read_cuboid(layout, digest, {.middle = std::span(middle).first(n_dims), .radius = std::span(radius).first(n_dims)});
  std::vector<std::pair<double, std::size_t>> nearest;  // how far, negative, so that the farthest are first
  for (std::size_t slot = 0; slot < keys.n_tokens(); ++slot) {
    double far = 0.0;
    for (std::size_t d = 0; d < n_dims; ++d) {
      const double x = double{within(keys.row(slot)[d])} - double{middle[d]};
      far += x * x;
    }
    nearest.emplace_back(-far, slot);
  }
  const std::size_t n = std::min(to_size(layout.n_keys), nearest.size());
  std::ranges::partial_sort(nearest, nearest.begin() + static_cast<std::ptrdiff_t>(n));
  std::vector<std::size_t> slots;
  for (std::size_t i = 0; i < n; ++i) slots.push_back(nearest[i].second);
  std::ranges::sort(slots);
  return slots;
}

void write_key_digest(const KeyDigestLayout& layout, const FrameRows& keys, std::span<std::byte> out) {
  EBB_CHECK(out.size() == layout.bytes() && keys.n_dims() == to_size(layout.n_dims) &&
                keys.n_tokens() >= to_size(layout.n_keys) && keys.n_tokens() > 0,
            "a digest of {} bytes for {} keys of {}", out.size(), keys.n_tokens(), keys.n_dims());
  write_ranges(layout, keys, out);
  write_sketch(layout, keys, out);
}

void read_box(const KeyDigestLayout& layout, std::span<const std::byte> digest, const KeyBox& box) {
  read_least(digest, box.least);
  read_range(layout, digest, box.greatest);
  for (std::size_t d = 0; d < box.least.size(); ++d) box.greatest[d] += box.least[d];
}

void read_half_box(const KeyDigestLayout& layout, std::span<const std::byte> digest, const KeyCuboid& box) {
  read_least(digest, box.middle);
  read_range(layout, digest, box.radius);
  for (std::size_t d = 0; d < box.middle.size(); ++d) {
    box.radius[d] *= 0.5F;
    box.middle[d] += box.radius[d];
  }
}

void read_cuboid(const KeyDigestLayout& layout, std::span<const std::byte> digest, const KeyCuboid& cuboid) {
  read_half_box(layout, digest, cuboid);
  const std::byte* steps = digest.data() + layout.radius_offset();
  for (std::size_t d = 0; d < cuboid.radius.size(); ++d) {
    cuboid.radius[d] *= static_cast<float>(std::to_integer<int>(steps[d])) * (1.0F / kMostByte);
  }
}

void read_steps(const KeyDigestLayout& layout, std::span<const std::byte> digest, const KeySteps& steps) {
  read_least(digest, steps.least);
  read_range(layout, digest, steps.step);
  for (float& step : steps.step) step /= static_cast<float>(kSteps);
}

void read_sketch(const KeyDigestLayout& layout, std::span<const std::byte> digest, std::span<float> planes) {
  Channels least;
  Channels step;
  const std::size_t n_dims = to_size(layout.n_dims);
  read_steps(layout, digest, {.least = std::span(least).first(n_dims), .step = std::span(step).first(n_dims)});
  const std::size_t quarter = to_size(layout.n_slots) / 4;
  const std::byte* codes = digest.data() + layout.sketch_offset();
  float* out = planes.data();
  for (std::size_t d = 0; d < n_dims; ++d, codes += quarter) {
    for (unsigned part = 0; part < 4; ++part, out += quarter) {
      for (std::size_t i = 0; i < quarter; ++i) {
        out[i] = least[d] + step[d] * static_cast<float>((std::to_integer<unsigned>(codes[i]) >> (2 * part)) & 3U);
      }
    }
  }
}

}  // namespace ebb
