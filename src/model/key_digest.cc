#include "model/key_digest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include <ggml.h>

#include "base/status.h"
#include "base/to_size.h"
#include "model/score_kernels.h"

namespace ebb {
namespace {

constexpr float kMostHalf = 65504.0F;
constexpr std::int32_t kSteps = 3;  // between four levels

using Channels = std::array<float, kMaxHeadDim>;

void write_channels(std::span<const float> x, std::byte* out) {
  std::array<ggml_fp16_t, kMaxHeadDim> halves;
  ggml_fp32_to_fp16_row(x.data(), halves.data(), static_cast<std::int64_t>(x.size()));
  std::memcpy(out, halves.data(), x.size() * sizeof(ggml_fp16_t));
}

void read_channels(const std::byte* in, std::span<float> x) {
  std::array<std::uint16_t, kMaxHeadDim> halves;
  std::memcpy(halves.data(), in, x.size() * sizeof(std::uint16_t));
  score_kernels().widen_halves(halves.data(), x.size(), x.data());
}

// What the sketch's steps are reckoned from is what is written, so that who reads it has the same.
void write_ranges(const KeyDigestLayout& layout, const FrameRows& keys, std::span<std::byte> out) {
  const std::size_t n_dims = keys.n_dims();
  Channels least;
  Channels greatest;
  least.fill(kMostHalf);
  greatest.fill(-kMostHalf);
  for (std::size_t slot = 0; slot < keys.n_tokens(); ++slot) {
    const std::span<const float> key = keys.row(slot);
    for (std::size_t d = 0; d < n_dims; ++d) {
      least[d] = std::min(least[d], std::max(key[d], -kMostHalf));
      greatest[d] = std::max(greatest[d], std::min(key[d], kMostHalf));
    }
  }
  Channels range;
  Channels radius;
  for (std::size_t d = 0; d < n_dims; ++d) {
    range[d] = std::min(greatest[d] - least[d], kMostHalf);
    const float middle = least[d] + 0.5F * range[d];
    double sum = 0.0;
    for (std::size_t slot = 0; slot < keys.n_tokens(); ++slot)
      sum += std::abs(double{keys.row(slot)[d]} - double{middle});
    radius[d] = std::min(static_cast<float>(sum / static_cast<double>(keys.n_tokens())), kMostHalf);
  }
  write_channels(std::span(least).first(n_dims), out.data());
  write_channels(std::span(range).first(n_dims), out.data() + layout.channel_bytes());
  write_channels(std::span(radius).first(n_dims), out.data() + 2 * layout.channel_bytes());
}

void write_sketch(const KeyDigestLayout& layout, const FrameRows& keys, std::span<std::byte> out) {
  Channels least;
  Channels range;
  const std::size_t n_dims = keys.n_dims();
  read_channels(out.data(), std::span(least).first(n_dims));
  read_channels(out.data() + layout.channel_bytes(), std::span(range).first(n_dims));
  const std::size_t quarter = to_size(layout.n_slots) / 4;
  std::byte* codes = out.data() + layout.sketch_offset();
  std::fill_n(codes, layout.sketch_bytes(), std::byte{0});
  for (std::size_t d = 0; d < n_dims; ++d, codes += quarter) {
    const float per_step = range[d] > 0.0F ? static_cast<float>(kSteps) / range[d] : 0.0F;
    for (std::size_t slot = 0; slot < keys.n_tokens(); ++slot) {
      const float x = std::clamp((keys.row(slot)[d] - least[d]) * per_step, 0.0F, static_cast<float>(kSteps));
      const auto code = static_cast<unsigned>(std::lround(x));
      codes[slot % quarter] |= static_cast<std::byte>(code << (2 * (slot / quarter)));
    }
  }
}

}  // namespace

void write_key_digest(const KeyDigestLayout& layout, const FrameRows& keys, std::span<std::byte> out) {
  EBB_CHECK(out.size() == layout.bytes() && keys.n_dims() == to_size(layout.n_dims) &&
                keys.n_tokens() <= to_size(layout.n_slots) && keys.n_tokens() > 0,
            "a digest of {} bytes for {} keys of {}", out.size(), keys.n_tokens(), keys.n_dims());
  write_ranges(layout, keys, out);
  write_sketch(layout, keys, out);
}

void read_box(const KeyDigestLayout& layout, std::span<const std::byte> digest, const KeyBox& box) {
  read_channels(digest.data(), box.least);
  read_channels(digest.data() + layout.channel_bytes(), box.greatest);
  for (std::size_t d = 0; d < box.least.size(); ++d) box.greatest[d] += box.least[d];
}

void read_cuboid(const KeyDigestLayout& layout, std::span<const std::byte> digest, const KeyCuboid& cuboid) {
  read_box(layout, digest, {.least = cuboid.middle, .greatest = cuboid.radius});
  for (std::size_t d = 0; d < cuboid.middle.size(); ++d) {
    cuboid.middle[d] += 0.5F * (cuboid.radius[d] - cuboid.middle[d]);
  }
  read_channels(digest.data() + 2 * layout.channel_bytes(), cuboid.radius);
}

void read_steps(const KeyDigestLayout& layout, std::span<const std::byte> digest, const KeySteps& steps) {
  read_channels(digest.data(), steps.least);
  read_channels(digest.data() + layout.channel_bytes(), steps.step);
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
