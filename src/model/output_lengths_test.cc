#include "model/output_lengths.h"

#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include <ggml.h>
#include <gtest/gtest.h>

#include "device/backend.h"
#include "gguf/toy_header.h"
#include "model/attention.h"
#include "model/frame_digest.h"
#include "model/model.h"
#include "model/random_model.h"
#include "model/toy_keys.h"

namespace ebb {
namespace {

// W_O as ggml reads it, [n_embd][n_heads * head_dim].
std::vector<std::vector<float>> output_matrix(const Model& model, std::size_t layer) {
  const TensorInfo* const info = model.file().find_tensor("blk." + std::to_string(layer) + ".attn_output.weight");
  const std::byte* const bytes = model.file().bytes_of(*info).data();
  const auto n_in = static_cast<std::size_t>(info->shape[0]);
  std::vector<std::vector<float>> rows(static_cast<std::size_t>(info->shape[1]), std::vector<float>(n_in));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::byte* const row = bytes + r * ggml_row_size(info->type, info->shape[0]);
    if (info->type == GGML_TYPE_F32) {
      std::memcpy(rows[r].data(), row, n_in * sizeof(float));
    } else {
      ggml_get_type_traits(info->type)->to_float(row, rows[r].data(), info->shape[0]);
    }
  }
  return rows;
}

// Mean over the query heads of a KV head, of a direct product.
double direct_length(const Model& model, std::size_t layer, std::size_t kv_head, const std::vector<float>& value) {
  const auto n_group = static_cast<std::size_t>(model.hparams().n_heads / model.hparams().n_kv_heads);
  const auto matrix = output_matrix(model, layer);
  double lengths = 0.0;
  for (std::size_t head = kv_head * n_group; head < (kv_head + 1) * n_group; ++head) {
    double square = 0.0;
    for (const std::vector<float>& row : matrix) {
      double sum = 0.0;
      for (std::size_t i = 0; i < value.size(); ++i) sum += double{row[head * value.size() + i]} * double{value[i]};
      square += sum * sum;
    }
    lengths += std::sqrt(square) / static_cast<double>(n_group);
  }
  return lengths;
}

std::vector<float> random_value(std::mt19937& random, std::int32_t n) {
  std::normal_distribution<float> normal;
  std::vector<float> value(static_cast<std::size_t>(n));
  for (float& x : value) x = normal(random);
  return value;
}

TEST(OutputLengths, are_those_of_the_product_with_the_output_matrix_of_any_type) {
  std::mt19937 random(7);
  for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K}) {
    const ToyFile file("");
    // Heads that share K and V.
    ASSERT_TRUE(write_random_model({.n_layers = 3,
                                    .n_embd = 256,
                                    .n_heads = 8,
                                    .n_kv_heads = 2,
                                    .head_dim = 32,
                                    .n_ff = 256,
                                    .weight_type = type},
                                   file.path())
                    .ok());
    const auto backend = Backend::open("cpu", 2);
    const auto model = Model::load(file.path(), **backend, {});
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto lengths = OutputLengths::make(**model, 2);
    ASSERT_TRUE(lengths.ok()) << lengths.status().message();
    EXPECT_EQ((*lengths)->bytes(), 3U * 8 * 32 * 32 * 4);
    for (std::size_t head = 0; head < 6; ++head) {
      const std::vector<float> value = random_value(random, 32);
      const double direct = direct_length(**model, head / 2, head % 2, value);
      EXPECT_GT(direct, 0.0);
      EXPECT_NEAR((*lengths)->length(head, value), direct, 1e-4 * direct) << ggml_type_name(type) << ' ' << head;
    }
    EXPECT_EQ((*lengths)->length(0, std::vector<float>(32, 0.0F)), 0.0);
  }
}

TEST(OutputLengths, are_the_same_bits_with_every_instruction_set) {
  for (const std::int32_t head_dim : {24, 64, 80, 160}) {
    const ToyFile file("");
    ASSERT_TRUE(
        write_random_model({.n_embd = 64, .n_heads = 2, .n_kv_heads = 1, .head_dim = head_dim}, file.path()).ok());
    const auto backend = Backend::open("cpu", 1);
    const auto model = Model::load(file.path(), **backend, {});
    ASSERT_TRUE(model.ok()) << model.status().message();
    const std::unique_ptr<OutputLengths> lengths = OutputLengths::make(**model, 1).value();
    std::mt19937 random(9);
    const std::vector<float> value = random_value(random, head_dim);
    const double direct = direct_length(**model, 0, 0, value);
    const KernelSet before = current_kernel_set();
    std::set<double> seen;
    for (const KernelSet set : {KernelSet::kPortable, KernelSet::kAvx2, KernelSet::kAvx512}) {
      if (try_set_kernel_set(set)) seen.insert(lengths->length(0, value));
    }
    EXPECT_TRUE(try_set_kernel_set(before));
    ASSERT_EQ(seen.size(), 1U) << head_dim;
    EXPECT_NEAR(*seen.begin(), direct, 1e-4 * direct) << head_dim;
  }
}

TEST(OutputLengths, of_several_values_are_those_of_each_to_the_last_bit) {
  for (const std::int32_t head_dim : {24, 34, 64, 160}) {
    const ToyFile file("");
    ASSERT_TRUE(
        write_random_model({.n_embd = 70, .n_heads = 6, .n_kv_heads = 2, .head_dim = head_dim}, file.path()).ok());
    const auto backend = Backend::open("cpu", 1);
    const auto model = Model::load(file.path(), **backend, {});
    ASSERT_TRUE(model.ok()) << model.status().message();
    const std::unique_ptr<OutputLengths> lengths = OutputLengths::make(**model, 1).value();
    std::mt19937 random(11);
    const KernelSet before = current_kernel_set();
    for (const KernelSet set : {KernelSet::kPortable, KernelSet::kAvx2, KernelSet::kAvx512}) {
      if (!try_set_kernel_set(set)) continue;
      for (const std::int32_t n_tokens : {0, 1, 15, 16, 17, 64, 128}) {
        const std::vector<float> values = random_value(random, n_tokens * head_dim);
        const std::vector<double> together = lengths->lengths(1, values);
        ASSERT_EQ(together.size(), static_cast<std::size_t>(n_tokens));
        for (std::size_t i = 0; i < together.size(); ++i) {
          const auto n = static_cast<std::size_t>(head_dim);
          ASSERT_EQ(together[i], lengths->length(1, std::span(values).subspan(i * n, n)))
              << "value " << i << " of " << n_tokens << ", dimensions: " << head_dim;
        }
      }
    }
    EXPECT_TRUE(try_set_kernel_set(before));
  }
}

TEST(OutputLengths, of_a_frame_are_the_mean_over_its_tokens) {
  const ToyFile file("");
  // Of as many rows as are no whole number of those that are read at once.
  ASSERT_TRUE(write_random_model({.n_embd = 70, .biases = true}, file.path()).ok());
  const auto backend = Backend::open("cpu", 1);
  const auto model = Model::load(file.path(), **backend, {});
  ASSERT_TRUE(model.ok()) << model.status().message();
  const std::unique_ptr<OutputLengths> lengths = OutputLengths::make(**model, 1).value();
  const FrameLayout layout{.row_type = RowType::kF32, .block_size = 4, .head_dim_k = 16, .head_dim_v = 16};
  std::vector<std::byte> frame(layout.frame_bytes());
  std::mt19937 random(8);
  double mean = 0.0;
  for (std::int32_t slot = 0; slot < 4; ++slot) {
    const std::vector<float> value = random_value(random, 16);
    toy::put_value(layout, frame, slot, {value.begin(), value.end()});
    mean += direct_length(*model.value(), 1, 0, value) / 4.0;
  }
  const FrameDigest digest = digest_frame(layout, frame, 4, {.lengths = lengths.get(), .head = 2});
  EXPECT_NEAR(digest.output_length, mean, 1e-4 * mean);
  EXPECT_TRUE(digest.values.mean.empty());
}

}  // namespace
}  // namespace ebb
