#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "model/attention.h"
#include "model/toy_attention.h"

namespace ebb {
namespace {

using toy::ggml_type_of;

constexpr RowType kRowTypes[] = {RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0};

// One block of one KV head, filled by one write_kv() call of `n_tokens` rows from `first` on.
struct Written {
  FrameLayout layout;
  std::vector<float> k, v;
  std::vector<std::byte> frame;
};

Written write_block(const FrameLayout& layout, std::vector<float> k, std::vector<float> v, std::int32_t slot) {
  Written written{layout, std::move(k), std::move(v), {}};
  written.frame.assign(layout.frame_bytes(), std::byte{0xFF});
  const auto n_tokens = static_cast<std::int32_t>(written.k.size()) / layout.head_dim_k;
  const std::vector<TableEntry> entries = {{FrameIndex(0), Position(100), slot + n_tokens}};
  AttentionStep step;
  step.n_layers = 1;
  step.n_kv_heads = 1;
  step.sequences = {{0, n_tokens, Position(100 + slot)}};
  step.tables = {entries};
  step.frames = written.frame.data();
  AttentionShape shape;
  shape.layout = layout;
  shape.n_heads = shape.n_kv_heads = 1;
  AttentionTensors tensors;
  tensors.k = written.k.data();
  tensors.v = written.v.data();
  tensors.k_row_stride = to_size(layout.head_dim_k);
  tensors.v_row_stride = to_size(layout.head_dim_v);
  AttentionScratch scratch;
  write_kv(shape, step, LayerIndex(0), tensors, scratch, 0, 1);
  return written;
}

template <class T>
T read_at(const std::vector<std::byte>& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// The bytes that element `d` of a row has in a ggml row of this type, and of the scale of its group.
struct GgmlRow {
  std::vector<std::uint8_t> bytes;
  RowType type;

  GgmlRow(RowType row_type, const float* x, std::int32_t n)
      : bytes(ggml_row_size(ggml_type_of(row_type), n)), type(row_type) {
    if (type == RowType::kF32) {
      std::memcpy(bytes.data(), x, bytes.size());
    } else {
      ggml_get_type_traits(ggml_type_of(type))->from_float_ref(x, bytes.data(), n);
    }
  }
  [[nodiscard]] const std::uint8_t* element(std::size_t d, std::size_t n_bytes) const {
    if (type == RowType::kQ8_0) return bytes.data() + d / 32 * 34 + 2 + d % 32;
    return bytes.data() + d * n_bytes;
  }
  [[nodiscard]] const std::uint8_t* scale(std::size_t group) const { return bytes.data() + group * 34; }
};

void expect_ggml_bits(const Written& written, std::int32_t first_slot) {
  const FrameLayout& layout = written.layout;
  const std::size_t size = layout.element_bytes();
  const auto dk = to_size(layout.head_dim_k);
  const auto dv = to_size(layout.head_dim_v);
  const auto stride = to_size(layout.key_stride());
  for (std::size_t token = 0; token < written.k.size() / dk; ++token) {
    const std::size_t slot = to_size(first_slot) + token;
    const GgmlRow k(layout.row_type, &written.k[token * dk], layout.head_dim_k);
    const GgmlRow v(layout.row_type, &written.v[token * dv], layout.head_dim_v);
    for (std::size_t d = 0; d < dk; ++d) {
      ASSERT_EQ(std::memcmp(written.frame.data() + (d * stride + slot) * size, k.element(d, size), size), 0)
          << row_type_name(layout.row_type) << " K " << token << " " << d << " = " << written.k[token * dk + d];
    }
    for (std::size_t d = 0; d < dv; ++d) {
      const std::byte* const element = written.frame.data() + layout.v_offset() + (slot * dv + d) * size;
      ASSERT_EQ(std::memcmp(element, v.element(d, size), size), 0)
          << row_type_name(layout.row_type) << " V " << token << " " << d << " = " << written.v[token * dv + d];
    }
    if (layout.row_type != RowType::kQ8_0) continue;
    for (std::size_t g = 0; g < dk / 32; ++g) {
      const std::size_t at = layout.k_scales_offset() + (g * stride + slot) * 2;
      ASSERT_EQ(std::memcmp(written.frame.data() + at, k.scale(g), 2), 0) << "scale of K " << token << " " << g;
    }
    for (std::size_t g = 0; g < dv / 32; ++g) {
      const std::size_t at = layout.v_scales_offset() + (slot * (dv / 32) + g) * 2;
      ASSERT_EQ(std::memcmp(written.frame.data() + at, v.scale(g), 2), 0) << "scale of V " << token << " " << g;
    }
  }
}

std::vector<float> random_values(std::mt19937& random, std::size_t n) {
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-12, 4);
  std::vector<float> out(n);
  for (float& x : out) x = std::ldexp(normal(random), exponent(random));
  return out;
}

TEST(WriteKv, stores_the_bits_that_ggml_stores_for_every_row_type_and_block_size) {
  std::mt19937 random(1);
  for (const RowType type : kRowTypes) {
    for (const std::int32_t block_size : {8, 33, 64, 128}) {
      for (const std::int32_t slot : {0, 5}) {
        const FrameLayout layout{.row_type = type, .block_size = block_size, .head_dim_k = 64, .head_dim_v = 96};
        ASSERT_TRUE(layout.validate().ok());
        const auto n = to_size(block_size - slot - 1);
        expect_ggml_bits(write_block(layout, random_values(random, n * 64), random_values(random, n * 96), slot), slot);
      }
    }
  }
}

TEST(WriteKv, stores_odd_head_dimensions) {
  std::mt19937 random(2);
  for (const RowType type : {RowType::kF32, RowType::kF16, RowType::kBF16}) {
    const FrameLayout layout{.row_type = type, .block_size = 16, .head_dim_k = 7, .head_dim_v = 19};
    expect_ggml_bits(write_block(layout, random_values(random, 16 * 7), random_values(random, 16 * 19), 0), 0);
  }
}

TEST(WriteKv, leaves_the_other_slots_of_a_block_alone) {
  for (const RowType type : kRowTypes) {
    const FrameLayout layout{.row_type = type, .block_size = 24, .head_dim_k = 32, .head_dim_v = 32};
    const std::vector<float> ones(32, 1.0F);
    const Written written = write_block(layout, ones, ones, 3);
    std::size_t n_changed = 0;
    for (const std::byte b : written.frame) n_changed += b != std::byte{0xFF} ? 1 : 0;
    const auto most = static_cast<std::size_t>(layout.token_bytes());
    EXPECT_GT(n_changed, 0U);
    EXPECT_LE(n_changed, most) << row_type_name(type);
  }
}

// Every half and its neighbours in float, midpoints, subnormals, infinities; NaNs must stay NaNs.
std::vector<float> hard_values() {
  std::vector<float> out;
  for (std::uint32_t half = 0; half < 0x7C00; half += 7) {
    const float x = ggml_fp16_to_fp32(static_cast<ggml_fp16_t>(half));
    const float y = ggml_fp16_to_fp32(static_cast<ggml_fp16_t>(half + 1));
    const float middle = std::isinf(y) ? 65520.0F : (x + y) / 2.0F;
    for (const float z : {x, middle, std::nextafter(middle, 0.0F), std::nextafter(middle, INFINITY)}) {
      out.push_back(z);
      out.push_back(-z);
    }
  }
  for (const float x :
       {std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min(), std::numeric_limits<float>::max(),
        std::numeric_limits<float>::infinity(), 65504.0F, 65519.99F, 1e-8F, 2.9802322e-8F, 2.9802326e-8F}) {
    out.push_back(x);
    out.push_back(-x);
  }
  out.resize((out.size() + 15) / 16 * 16, 0.0F);
  return out;
}

TEST(WriteKv, rounds_to_nearest_even_through_subnormals_and_infinities_in_every_kernel_set) {
  const std::vector<float> values = hard_values();
  const KernelSet before = current_kernel_set();
  for (const KernelSet set : {KernelSet::kPortable, KernelSet::kAvx2, KernelSet::kAvx512}) {
    if (!try_set_kernel_set(set)) continue;
    for (const RowType type : {RowType::kF16, RowType::kBF16}) {
      const FrameLayout layout{.row_type = type, .block_size = 16, .head_dim_k = 16, .head_dim_v = 16};
      for (std::size_t i = 0; i < values.size(); i += 16) {
        const std::vector<float> row(values.begin() + static_cast<std::ptrdiff_t>(i),
                                     values.begin() + static_cast<std::ptrdiff_t>(i) + 16);
        expect_ggml_bits(write_block(layout, row, row, 0), 0);
      }
    }
  }
  EXPECT_TRUE(try_set_kernel_set(before));
}

TEST(WriteKv, keeps_nans_and_does_not_let_them_into_other_elements) {
  const KernelSet before = current_kernel_set();
  std::vector<float> row(32, 1.0F);
  row[3] = std::nanf("");
  row[4] = std::bit_cast<float>(0x7F800001U);
  for (const KernelSet set : {KernelSet::kPortable, KernelSet::kAvx2, KernelSet::kAvx512}) {
    if (!try_set_kernel_set(set)) continue;
    for (const RowType type : {RowType::kF16, RowType::kBF16}) {
      const FrameLayout layout{.row_type = type, .block_size = 8, .head_dim_k = 32, .head_dim_v = 32};
      const Written written = write_block(layout, row, row, 0);
      for (std::size_t d = 0; d < 32; ++d) {
        const auto bits = read_at<std::uint16_t>(written.frame, layout.v_offset() + d * 2);
        const float x = type == RowType::kF16 ? ggml_fp16_to_fp32(bits) : ggml_bf16_to_fp32(ggml_bf16_t{bits});
        ASSERT_EQ(std::isnan(x), d == 3 || d == 4) << kernel_set_name(set);
      }
    }
  }
  EXPECT_TRUE(try_set_kernel_set(before));
}

TEST(WriteKv, quantises_halves_away_from_zero_and_zero_rows_to_zero) {
  std::vector<float> row(32, 0.0F);
  const FrameLayout layout{.row_type = RowType::kQ8_0, .block_size = 8, .head_dim_k = 32, .head_dim_v = 32};
  expect_ggml_bits(write_block(layout, row, row, 0), 0);
  row[0] = 127.0F;  // the scale is 1
  for (std::size_t i = 1; i < row.size(); ++i) row[i] = (static_cast<float>(i) - 16.0F) / 2.0F;
  row[5] = std::nextafter(0.5F, 0.0F);
  row[6] = -row[5];
  expect_ggml_bits(write_block(layout, row, row, 0), 0);
}

}  // namespace
}  // namespace ebb
