// Rotated frames against float64: every row type, layout, kind and scaling. That the same holds against a model's own
// keys is in tests/anchor_test.cc.
#include "model/key_rotation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <random>
#include <string>

#include <fmt/format.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include "base/to_size.h"
#include "cache/row_types.h"
#include "model/attention.h"
#include "model/attention_work.h"
#include "model/sealed_frame.h"
#include "model/toy_keys.h"

namespace ebb::key_rotation_test {
namespace {

using toy::get_key;
using toy::key_byte_at;
using toy::put_key;

struct Case {
  FrameLayout layout;
  RopeKind kind = RopeKind::kNeoX;
  Hparams hparams;
  std::vector<float> factors;
  std::int32_t n_tokens = 0;
  std::int32_t anchor = 0;
  std::int32_t n_anchors = 0;

  [[nodiscard]] std::string text() const {
    return fmt::format("{} {}, kind {}, {} of {} dimensions, base {}, scale {}, yarn {}, {} factors, {} + {}",
                       row_type_name(layout.row_type), layout.key_order == KeyOrder::kByDim ? "by dim" : "by row",
                       static_cast<int>(kind), hparams.n_rot, layout.head_dim_k, hparams.rope_freq_base,
                       hparams.rope_freq_scale, hparams.yarn_ext_factor, factors.size(), anchor, n_anchors);
  }
};

Case random_case(std::mt19937& random) {
  const auto pick = [&](std::initializer_list<std::int32_t> of) { return of.begin()[random() % of.size()]; };
  Case c;
  const bool groups = pick({0, 1}) == 1;
  c.layout = {.row_type = static_cast<RowType>(groups ? 3 : pick({0, 1, 2})),
              .key_order = static_cast<KeyOrder>(pick({0, 1})),
              .block_size = pick({8, 13, 64, 128}),
              .head_dim_k = groups ? pick({32, 64, 128}) : pick({6, 16, 40, 64, 128}),
              .head_dim_v = 32};
  c.kind = static_cast<RopeKind>(pick({0, 1}));
  c.hparams.n_rot = pick({0, 0, 1}) == 0 ? c.layout.head_dim_k : c.layout.head_dim_k / 4 * 2;
  c.hparams.layer_is_sliding = {pick({0, 1}) == 1};
  c.hparams.rope_freq_base = static_cast<float>(pick({10000, 500000, 1000000}));
  c.hparams.rope_orig_ctx = 4096;
  switch (pick({0, 1, 2, 3})) {
    case 1: c.hparams.rope_freq_scale = 0.25F; break;
    case 2:
      c.hparams.rope_freq_scale = 1.0F / 8.0F;
      c.hparams.yarn_ext_factor = 1.0F;
      break;
    case 3:
      for (std::int32_t i = 0; i < c.hparams.n_rot / 2; ++i) {
        c.factors.push_back(1.0F + static_cast<float>(random() % 700) / 100.0F);
      }
      break;
    default: break;
  }
  c.n_tokens = pick({1, 5, c.layout.block_size});
  c.anchor = pick({0, 100, 30000, 4000000});
  c.n_anchors = pick({1, -1, 64, -777, 31000, -29000, 3999999});
  return c;
}

// Radians per anchor of pair i, as the papers have it.
double frequency(const Case& c, std::int32_t i) {
  const Hparams& h = c.hparams;
  const auto base = static_cast<double>(h.freq_base(LayerIndex(0)));
  const float step = std::pow(static_cast<float>(base), -2.0F / static_cast<float>(h.n_rot));
  const double plain =
      std::pow(static_cast<double>(step), i) / (c.factors.empty() ? 1.0 : double{c.factors[to_size(i)]});
  const auto scale = static_cast<double>(h.freq_scale(LayerIndex(0)));
  if (h.yarn_ext_factor == 0.0F) return plain * scale;
  // The pair that turns `turns` times in the original context.
  const auto pair_at = [&](double turns) {
    return h.n_rot * std::log(h.rope_orig_ctx / (turns * 2.0 * std::numbers::pi)) / (2.0 * std::log(base));
  };
  const double low = std::max(0.0, std::floor(pair_at(double{h.yarn_beta_fast})));
  const double high = std::min(h.n_rot - 1.0, std::ceil(pair_at(double{h.yarn_beta_slow})));
  const double kept = 1.0 - std::clamp((i - low) / std::max(0.001, high - low), 0.0, 1.0);
  return plain * (scale * (1.0 - kept) + kept);
}

// The key rotated for an anchor.
std::vector<double> rotated(const Case& c, const std::vector<double>& key, std::int32_t anchor) {
  std::vector<double> out = key;
  const std::int32_t n_pairs = c.hparams.n_rot / 2;
  for (std::int32_t i = 0; i < n_pairs; ++i) {
    const std::size_t x = to_size(c.kind == RopeKind::kNeoX ? i : 2 * i);
    const std::size_t y = to_size(c.kind == RopeKind::kNeoX ? i + n_pairs : 2 * i + 1);
    const double angle = anchor * frequency(c, i);
    out[x] = key[x] * std::cos(angle) - key[y] * std::sin(angle);
    out[y] = key[x] * std::sin(angle) + key[y] * std::cos(angle);
  }
  return out;
}

// Half a unit of an element as large as the row's largest.
double half_unit(RowType type, double largest) {
  switch (type) {
    case RowType::kF32: return largest * 0x1p-22;  // products and a sum in f32, too
    case RowType::kF16: return largest * 0x1p-11;
    case RowType::kBF16: return largest * 0x1p-8;
    case RowType::kQ8_0: return largest * (0.5 / 127.0 + 0x1p-11);
    case RowType::kKivi4: break;  // its scales are not a row's: it has a test of its own
  }
  return 0.0;
}

std::vector<std::byte> random_bytes(std::mt19937& random, std::size_t n) {
  std::vector<std::byte> bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

using Keys = std::vector<std::vector<double>>;

Keys random_keys(std::mt19937& random, const Case& c) {
  std::normal_distribution<double> normal;
  Keys keys(to_size(c.n_tokens), std::vector<double>(to_size(c.layout.head_dim_k)));
  for (auto& key : keys) {
    for (double& x : key) x = normal(random);
  }
  return keys;
}

// Whatever bytes, and in the first slots the keys, rotated for the case's anchor and those behind it.
std::vector<std::byte> make_frame(std::mt19937& random, const Case& c, const Keys& keys) {
  std::vector<std::byte> frame = random_bytes(random, c.layout.frame_bytes());
  for (std::int32_t s = 0; s < c.n_tokens; ++s) {
    put_key(c.layout, frame, s, rotated(c, keys[to_size(s)], c.anchor + s));
  }
  return frame;
}

void rotate(const Case& c, std::vector<std::byte>& frame) {
  const RopeFrequencies frequencies = rope_frequencies(c.hparams, c.kind, LayerIndex(0), c.factors);
  rotate_keys(c.layout, make_key_rotation(frequencies, c.n_anchors), c.n_tokens, frame);
}

TEST(KeyRotation, gives_the_keys_of_the_other_anchor_within_the_rounding_of_the_row_type) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const Case c = random_case(random);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, c.text()));
    const Keys keys = random_keys(random, c);
    std::vector<std::byte> frame = make_frame(random, c, keys);
    rotate(c, frame);
    for (std::int32_t s = 0; s < c.n_tokens; ++s) {
      const std::vector<double> expected = rotated(c, keys[to_size(s)], c.anchor + s + c.n_anchors);
      const std::vector<float> actual = get_key(c.layout, frame, s);
      double largest = 0.0;
      // A rotation keeps the length of a pair, and each of the pair may become as long.
      for (const double x : keys[to_size(s)]) largest = std::max(largest, std::abs(x) * std::numbers::sqrt2);
      // Rounded once when it was written, which the rotation spreads over a pair, and once again.
      const double bound = (1.0 + std::numbers::sqrt2) * half_unit(c.layout.row_type, largest);
      for (std::size_t d = 0; d < expected.size(); ++d) {
        ASSERT_NEAR(expected[d], double{actual[d]}, bound) << "slot " << s << ", dimension " << d;
      }
    }
  }
}

TEST(KeyRotation, leaves_what_is_not_a_rotated_key_as_it_is) {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    std::mt19937 random(seed);
    Case c = random_case(random);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, c.text()));
    if (c.layout.row_type == RowType::kQ8_0) c.hparams.n_rot = c.layout.head_dim_k / 64 * 32;
    if (c.hparams.n_rot == 0) continue;
    c.factors.clear();
    const std::vector<std::byte> before = make_frame(random, c, random_keys(random, c));
    std::vector<std::byte> after = before;
    rotate(c, after);
    const std::size_t n_rotated = ggml_row_size(to_ggml_type(c.layout.row_type), c.hparams.n_rot);
    std::vector<bool> may_change(before.size(), false);
    for (std::int32_t s = 0; s < c.n_tokens; ++s) {
      for (std::size_t i = 0; i < n_rotated; ++i) may_change[key_byte_at(c.layout, s, i)] = true;
    }
    for (std::size_t i = 0; i < before.size(); ++i) {
      ASSERT_TRUE(may_change[i] || before[i] == after[i]) << "byte " << i;
    }
    EXPECT_NE(before, after);
  }
}

TEST(KeyRotation, by_no_anchors_changes_no_byte_whatever_the_bytes) {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    Case c = random_case(random);
    c.n_anchors = 0;
    const std::vector<std::byte> before = random_bytes(random, c.layout.frame_bytes());
    std::vector<std::byte> after = before;
    rotate(c, after);
    ASSERT_EQ(before, after) << c.text();
  }
}

TEST(KeyRotation, gives_the_same_bytes_with_every_kernel_set) {
  const KernelSet best = best_kernel_set();
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    const Case c = random_case(random);
    const std::vector<std::byte> frame = make_frame(random, c, random_keys(random, c));
    std::vector<std::byte> expected;
    for (const KernelSet set : {KernelSet::kPortable, KernelSet::kAvx2, KernelSet::kAvx512}) {
      if (!try_set_kernel_set(set)) continue;
      std::vector<std::byte> turned = frame;
      rotate(c, turned);
      if (expected.empty()) expected = turned;
      EXPECT_EQ(turned, expected) << kernel_set_name(set) << ": " << c.text();
    }
    ASSERT_TRUE(try_set_kernel_set(best));
  }
}

TEST(KeyRotation, turns_sliding_layers_by_frequencies_of_their_own) {
  Hparams hparams;
  hparams.n_rot = 16;
  hparams.layer_is_sliding = {false, true};
  hparams.rope_freq_base = 1e6F;
  hparams.rope_freq_base_sliding = 1e4F;
  const RopeFrequencies wide = rope_frequencies(hparams, RopeKind::kNeoX, LayerIndex(0), {});
  const RopeFrequencies sliding = rope_frequencies(hparams, RopeKind::kNeoX, LayerIndex(1), {});
  ASSERT_EQ(wide.per_anchor.size(), 8U);
  EXPECT_EQ(wide.per_anchor[0], 1.0);
  EXPECT_NEAR(wide.per_anchor[4], 1e-3, 1e-9);
  EXPECT_NEAR(sliding.per_anchor[4], 1e-2, 1e-8);
  EXPECT_FALSE(wide == sliding);
  EXPECT_EQ(make_key_rotation(wide, 5).cosines.size(), 8U);
}

TEST(KeyRotation, of_a_sealed_frame_is_that_of_what_its_codes_mean_within_half_a_scale_of_each_dimension) {
  const FrameLayout layout = {.row_type = RowType::kKivi4, .block_size = 40, .head_dim_k = 32, .head_dim_v = 24};
  const auto dims = [&](const std::vector<std::byte>& frame) {
    Keys keys(to_size(layout.block_size), std::vector<double>(to_size(layout.head_dim_k)));
    std::vector<float> x(to_size(layout.key_stride()));
    for (std::int32_t d = 0; d < layout.head_dim_k; ++d) {
      read_sealed_keys(layout, current_kernels(), frame.data(), d, x.data());
      for (std::size_t s = 0; s < keys.size(); ++s) keys[s][to_size(d)] = static_cast<double>(x[s]);
    }
    return keys;
  };
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    Case c = random_case(random);
    c.layout = layout;
    c.hparams.n_rot = seed % 3 == 0 ? 16 : 32;
    c.factors.clear();
    c.n_tokens = layout.block_size;
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, c.text()));
    std::vector<std::byte> open(layout.open_layout().frame_bytes());
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < open.size(); i += 2) {
      const ggml_fp16_t half = ggml_fp32_to_fp16(normal(random));
      std::memcpy(&open[i], &half, sizeof half);
    }
    std::vector<std::byte> frame(layout.frame_bytes());
    seal_frame(layout, current_kernels(), open.data(), frame.data());
    const std::vector<std::byte> before = frame;
    const Keys keys = dims(frame);
    rotate(c, frame);
    const Keys turned = dims(frame);
    for (std::int32_t d = 0; d < layout.head_dim_k; ++d) {
      std::vector<double> expected;
      for (const std::vector<double>& key : keys) expected.push_back(rotated(c, key, c.n_anchors)[to_size(d)]);
      const auto [low, high] = std::ranges::minmax(expected);
      const double bound = d < c.hparams.n_rot ? 0.52 * (high - low) / 15.0 + 4.0 * 0x1p-10 : 0.0;
      for (std::size_t s = 0; s < expected.size(); ++s) {
        ASSERT_NEAR(turned[s][to_size(d)], expected[s], bound) << "slot " << s << ", dimension " << d;
      }
    }
    EXPECT_TRUE(std::equal(frame.begin() + static_cast<std::ptrdiff_t>(layout.v_offset()), frame.end(),
                           before.begin() + static_cast<std::ptrdiff_t>(layout.v_offset())))
        << "values have no rotation";
  }
}

}  // namespace
}  // namespace ebb::key_rotation_test
