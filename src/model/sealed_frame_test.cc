#include "model/sealed_frame.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include "base/to_size.h"
#include "model/attention.h"
#include "model/attention_work.h"

namespace ebb {
namespace {

double value_of(std::uint16_t half) { return static_cast<double>(ggml_fp16_to_fp32(half)); }

std::uint8_t code_at(const std::uint8_t* codes, std::int32_t i) {
  const std::uint8_t byte = codes[i / 16 * 8 + i % 8];
  return i % 16 < 8 ? byte & 15U : byte >> 4U;
}

// Values as f16 holds them, spread over many magnitudes.
std::vector<float> f16_values(std::mt19937& random, std::int32_t n) {
  std::normal_distribution<float> normal;
  const int exponent = std::uniform_int_distribution<int>(-26, 11)(random);
  const float around = std::ldexp(normal(random), std::uniform_int_distribution<int>(-26, 11)(random));
  std::vector<float> x(to_size(n));
  for (float& value : x) {
    value = ggml_fp16_to_fp32(ggml_fp32_to_fp16(around + std::ldexp(normal(random), exponent)));
  }
  return x;
}

// Rounding the value itself to f32 comes on top of half a scale: its ulp against a scale that is at least 1/15 of an ulp
// of f16.
constexpr double kHalfScale = 0.5 + 1.0 / 256.0;

TEST(CodedRun, no_value_is_off_by_more_than_half_a_scale) {
  std::mt19937 random(3);
  for (int round = 0; round < 4000; ++round) {
    const std::int32_t n = std::uniform_int_distribution<std::int32_t>(1, kMaxRun)(random);
    const std::vector<float> x = f16_values(random, n);
    std::array<std::uint8_t, kMaxRun / 2> codes;
    const CodedRun run = code_run(current_kernels(), x.data(), n, codes.data());
    const double scale = value_of(run.scale);
    const double least = value_of(run.least);
    ASSERT_EQ(least, static_cast<double>(*std::ranges::min_element(x)));
    const double range = static_cast<double>(*std::ranges::max_element(x)) - least;
    // Rounded up, by one step of f16 at most.
    ASSERT_GE(scale * 15.0, range * (1.0 - 1e-6));
    ASSERT_LE(scale, std::max(range / 15.0 * (1.0 + 0x1p-10), range / 15.0 + 0x1p-24));
    std::array<float, kMaxRun> back;
    current_kernels().from_codes(codes.data(), static_cast<float>(scale), static_cast<float>(least), back.data(),
                                 (n + 15) / 16 * 16);
    for (std::int32_t i = 0; i < n; ++i) {
      const double exact = least + scale * code_at(codes.data(), i);
      ASSERT_EQ(back[to_size(i)], static_cast<float>(exact)) << "one rounding";
      ASSERT_LE(std::abs(static_cast<double>(back[to_size(i)]) - static_cast<double>(x[to_size(i)])),
                kHalfScale * scale)
          << "value " << i << " of " << n;
    }
    for (std::int32_t i = n; i < (n + 15) / 16 * 16; ++i) ASSERT_EQ(code_at(codes.data(), i), 0);
  }
}

TEST(CodedRun, a_run_of_one_value_is_exact) {
  const std::vector<float> x(20, -0.3330078125F);
  std::array<std::uint8_t, kMaxRun / 2> codes;
  const CodedRun run = code_run(current_kernels(), x.data(), 20, codes.data());
  EXPECT_EQ(run.scale, 0);
  EXPECT_EQ(ggml_fp16_to_fp32(run.least), x[0]);
}

TEST(CodedRun, what_codes_cannot_hold_comes_back_as_numbers) {
  std::vector<float> x = {1.0F, -2.0F, std::numeric_limits<float>::infinity(), std::nanf(""), -3.0F};
  std::array<std::uint8_t, kMaxRun / 2> codes;
  const CodedRun run = code_run(current_kernels(), x.data(), 5, codes.data());
  std::array<float, 16> back;
  current_kernels().from_codes(codes.data(), ggml_fp16_to_fp32(run.scale), ggml_fp16_to_fp32(run.least), back.data(),
                               16);
  EXPECT_NEAR(back[2], 65504.0F, 32.0F);
  for (const float value : back) EXPECT_TRUE(std::isfinite(value));
}

struct Frame {
  FrameLayout layout;
  std::vector<std::byte> open;
  std::vector<std::byte> sealed;
};

Frame make_frame(const FrameLayout& layout, std::uint32_t seed) {
  std::mt19937 random(seed);
  Frame frame{.layout = layout, .open = std::vector<std::byte>(layout.open_layout().frame_bytes()), .sealed = {}};
  for (std::size_t i = 0; i + 1 < frame.open.size(); i += 2) {
    const ggml_fp16_t half = ggml_fp32_to_fp16(std::normal_distribution<float>()(random));
    std::memcpy(&frame.open[i], &half, sizeof half);
  }
  frame.sealed.resize(layout.frame_bytes());
  seal_frame(layout, current_kernels(), frame.open.data(), frame.sealed.data());
  return frame;
}

std::vector<FrameLayout> layouts() {
  std::vector<FrameLayout> all;
  for (const std::int32_t block_size : {8, 13, 32, 64, 100, 128}) {
    for (const std::int32_t head_dim : {1, 16, 24, 40, 64, 80, 128, 256}) {
      all.push_back({.row_type = RowType::kKivi4,
                     .block_size = block_size,
                     .head_dim_k = head_dim,
                     .head_dim_v = head_dim == 80 ? 33 : head_dim});
    }
  }
  return all;
}

TEST(SealedFrame, keys_have_a_scale_for_each_dimension_and_values_one_for_each_32_of_a_token) {
  for (const FrameLayout& layout : layouts()) {
    SCOPED_TRACE(
        fmt::format("blocks of {}, {} and {} dimensions", layout.block_size, layout.head_dim_k, layout.head_dim_v));
    const Frame frame = make_frame(layout, 5);
    const FrameLayout rows = layout.open_layout();
    const auto half = [](const std::vector<std::byte>& bytes, std::size_t at) {
      std::uint16_t value = 0;
      std::memcpy(&value, &bytes[at], sizeof value);
      return value;
    };
    const auto* const codes = reinterpret_cast<const std::uint8_t*>(frame.sealed.data());
    for (std::int32_t d = 0; d < layout.head_dim_k; ++d) {
      const double scale = value_of(half(frame.sealed, layout.k_scales_offset() + to_size(d) * 2));
      const double least = value_of(half(frame.sealed, layout.k_scales_offset() + to_size(layout.head_dim_k + d) * 2));
      for (std::int32_t s = 0; s < layout.block_size; ++s) {
        const double x = value_of(half(frame.open, to_size(d * layout.key_stride() + s) * 2));
        const std::uint8_t code = code_at(codes + d * layout.key_stride() / 2, s);
        ASSERT_LE(std::abs(least + scale * code - x), kHalfScale * scale) << "dimension " << d << ", slot " << s;
      }
    }
    for (std::int32_t s = 0; s < layout.block_size; ++s) {
      for (std::int32_t d = 0; d < layout.head_dim_v; ++d) {
        const std::int32_t run = s * 2 * layout.value_runs() + d / 32;
        const double scale = value_of(half(frame.sealed, layout.v_scales_offset() + to_size(run) * 2));
        const double least =
            value_of(half(frame.sealed, layout.v_scales_offset() + to_size(run + layout.value_runs()) * 2));
        const double x = value_of(half(frame.open, rows.v_offset() + to_size(s * layout.head_dim_v + d) * 2));
        const std::uint8_t code = code_at(codes + layout.v_offset() + s * layout.value_stride() / 2, d);
        ASSERT_LE(std::abs(least + scale * code - x), kHalfScale * scale) << "slot " << s << ", dimension " << d;
      }
    }
  }
}

TEST(SealedFrame, every_kernel_set_gives_the_same_bytes_and_the_same_keys) {
  const KernelSet before = current_kernel_set();
  for (const FrameLayout& layout : layouts()) {
    ASSERT_TRUE(try_set_kernel_set(KernelSet::kPortable));
    const Frame expected = make_frame(layout, 9);
    std::vector<float> keys(to_size(layout.key_stride()));
    read_sealed_keys(layout, current_kernels(), expected.sealed.data(), 0, keys.data());
    for (const KernelSet set : {KernelSet::kAvx2, KernelSet::kAvx512}) {
      if (!try_set_kernel_set(set)) continue;
      EXPECT_EQ(make_frame(layout, 9).sealed, expected.sealed) << kernel_set_name(set);
      std::vector<float> same(keys.size());
      read_sealed_keys(layout, current_kernels(), expected.sealed.data(), 0, same.data());
      EXPECT_EQ(std::memcmp(keys.data(), same.data(), keys.size() * sizeof(float)), 0) << kernel_set_name(set);
    }
  }
  ASSERT_TRUE(try_set_kernel_set(before));
}

TEST(SealedFrame, keys_that_are_written_again_as_they_were_read_stay_within_half_a_scale) {
  const Frame frame = make_frame({.row_type = RowType::kKivi4, .head_dim_k = 64, .head_dim_v = 64}, 2);
  std::vector<std::byte> again = frame.sealed;
  std::vector<float> x(64);
  std::vector<float> y(64);
  for (std::int32_t d = 0; d < 64; ++d) {
    read_sealed_keys(frame.layout, current_kernels(), frame.sealed.data(), d, x.data());
    write_sealed_keys(frame.layout, current_kernels(), again.data(), d, x.data());
    read_sealed_keys(frame.layout, current_kernels(), again.data(), d, y.data());
    const auto [low, high] = std::ranges::minmax(x);
    for (std::size_t s = 0; s < x.size(); ++s) ASSERT_NEAR(x[s], y[s], 0.51F * (high - low) / 15.0F);
  }
}

}  // namespace
}  // namespace ebb
