#include "model/product.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <ranges>
#include <thread>
#include <utility>
#include <vector>

#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include "base/toy_rounds.h"
#include "device/backend.h"

namespace ebb {
namespace {

constexpr std::pair<ggml_type, WeightKind> kTypes[] = {
    {GGML_TYPE_Q8_0, WeightKind::kQ8_0},    {GGML_TYPE_Q4_0, WeightKind::kQ4_0}, {GGML_TYPE_IQ4_NL, WeightKind::kIq4Nl},
    {GGML_TYPE_Q4_K, WeightKind::kQ4K},     {GGML_TYPE_Q5_K, WeightKind::kQ5K},  {GGML_TYPE_Q6_K, WeightKind::kQ6K},
    {GGML_TYPE_IQ4_XS, WeightKind::kIq4Xs}, {GGML_TYPE_F32, WeightKind::kF32},   {GGML_TYPE_F16, WeightKind::kF16},
    {GGML_TYPE_BF16, WeightKind::kBf16}};

// Whether the processor's products are ours or not: packed matrices multiply everywhere.
WeightKind kind_of(ggml_type type) {
  return std::ranges::find(kTypes, type, &std::pair<ggml_type, WeightKind>::first)->second;
}

std::vector<const ProductKernels*> kernel_sets() {
  std::vector<const ProductKernels*> sets = {&kPortableProductKernels};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
    sets.push_back(&kAvx2ProductKernels);
    if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
      sets.push_back(&kAvx512VnniProductKernels);
  }
#endif
  return sets;
}

std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& v : values) v = normal(random);
  return values;
}

// A random matrix as a file has it, packed, and in floats.
struct ToyMatrix {
  ToyMatrix(ggml_type type, std::size_t n_in, std::size_t n_out, unsigned seed = 7)
      : bytes(ggml_row_size(type, static_cast<std::int64_t>(n_in)) * n_out),
        values(n_in * n_out),
        packed(PackedMatrix::create(kind_of(type), n_in, n_out).value()) {
    const std::vector<float> random = random_floats(values.size(), seed);
    ggml_quantize_chunk(type, random.data(), bytes.data(), 0, static_cast<std::int64_t>(n_out),
                        static_cast<std::int64_t>(n_in), nullptr);
    if (type == GGML_TYPE_F32) {
      std::memcpy(values.data(), bytes.data(), bytes.size());
    } else {
      ggml_get_type_traits(type)->to_float(bytes.data(), values.data(), static_cast<std::int64_t>(values.size()));
    }
    packed.pack(bytes);
  }

  // Of a row of the matrix and one of rows, and the sum of its terms' sizes.
  [[nodiscard]] std::pair<double, double> exact(std::size_t out, const float* row) const {
    double sum = 0.0;
    double size = 0.0;
    for (std::size_t i = 0; i < packed.n_in(); ++i) {
      const double term = static_cast<double>(values[out * packed.n_in() + i]) * static_cast<double>(row[i]);
      sum += term;
      size += std::abs(term);
    }
    return {sum, size};
  }

  std::vector<std::byte> bytes;
  std::vector<float> values;
  PackedMatrix packed;
};

std::vector<float> multiply(const ProductKernels& kernels, const PackedMatrix& matrix, const std::vector<float>& rows,
                            std::size_t n_threads = 1) {
  const std::size_t n_blocks = matrix.n_in() / kBlockValues;
  const std::size_t n_rows = rows.size() / matrix.n_in();
  std::vector<RoundedBlock> rounded(n_rows * n_blocks);
  for (std::size_t r = 0; r < n_rows; ++r) {
    kernels.round_row(rows.data() + r * matrix.n_in(), n_blocks, rounded.data() + r * n_blocks);
  }
  const RoundedRows as_bytes = {.data = rounded.data(), .n_rows = n_rows, .n_blocks = n_blocks};
  const FloatRows as_floats = {.data = rows.data(), .n_rows = n_rows, .n_blocks = n_blocks};
  std::vector<float> out(n_rows * matrix.n_out(), std::numeric_limits<float>::quiet_NaN());
  PanelQueue queue;
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < n_threads; ++t) {
      threads.emplace_back([&] {
        if (matrix.takes_floats()) {
          matrix.multiply(kernels, as_floats, out.data(), queue, n_threads);
        } else {
          matrix.multiply(kernels, as_bytes, out.data(), queue, n_threads);
        }
      });
    }
  }
  return out;
}

bool is_same(const float* one, const float* other, std::size_t n) {
  return std::memcmp(one, other, n * sizeof(float)) == 0;
}

// Rows of whole numbers of which each block has one of 127: nothing is rounded, and what is left is the order of sums.
TEST(Product, of_rows_that_are_bytes_already_is_exact) {
  for (const ggml_type type : kTypes | std::views::keys) {
    const ToyMatrix matrix(type, 512, 48);
    std::vector<float> rows(512 * 20);
    std::mt19937 random(3);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i] = i % kBlockValues == 5 ? 127.0F : static_cast<float>(static_cast<int>(random() % 255) - 127);
    }
    for (const ProductKernels* kernels : kernel_sets()) {
      const std::vector<float> out = multiply(*kernels, matrix.packed, rows);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const auto [exact, size] = matrix.exact(i % 48, rows.data() + i / 48 * 512);
        ASSERT_NEAR(out[i], exact, 1e-6 * size) << ggml_type_name(type) << " " << i;
      }
    }
  }
}

TEST(Product, of_other_rows_is_off_by_their_rounding) {
  for (const ggml_type type : kTypes | std::views::keys) {
    const ToyMatrix matrix(type, 768, 32);
    const std::vector<float> rows = random_floats(768 * 9, 5);
    const std::vector<float> out = multiply(kPortableProductKernels, matrix.packed, rows);
    double error = 0.0;
    double all = 0.0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double exact = matrix.exact(i % 32, rows.data() + i / 32 * 768).first;
      error += std::pow(exact - static_cast<double>(out[i]), 2);
      all += exact * exact;
    }
    EXPECT_LT(std::sqrt(error / all), 0.007) << ggml_type_name(type);
  }
}

// Decisions/0034: alone or with others, by any threads and instruction set.
TEST(Product, has_the_same_bits_whatever_the_company_threads_and_instruction_set) {
  std::size_t n_compared = 0;
  for (RandomRounds rounds(60); rounds.next();) {
    SCOPED_TRACE(rounds.seed());
    std::mt19937 random(rounds.seed());
    const ggml_type type = kTypes[random() % std::size(kTypes)].first;
    const std::size_t n_in = 256 * (1 + random() % 3);
    const std::size_t n_out = 1 + random() % 100;
    const std::size_t n_rows = 1 + random() % 40;
    const ToyMatrix matrix(type, n_in, n_out, rounds.seed());
    const std::vector<float> rows = random_floats(n_in * n_rows, rounds.seed() + 1);
    std::vector<float> alone;
    for (std::size_t r = 0; r < n_rows; ++r) {
      const std::vector<float> row(rows.begin() + static_cast<std::ptrdiff_t>(r * n_in),
                                   rows.begin() + static_cast<std::ptrdiff_t>((r + 1) * n_in));
      const std::vector<float> out = multiply(kPortableProductKernels, matrix.packed, row);
      alone.insert(alone.end(), out.begin(), out.end());
    }
    for (const ProductKernels* kernels : kernel_sets()) {
      const std::vector<float> together = multiply(*kernels, matrix.packed, rows, 1 + random() % 3);
      ASSERT_TRUE(is_same(together.data(), alone.data(), alone.size())) << ggml_type_name(type) << " " << n_rows;
      const std::vector<float> first =
          multiply(*kernels, matrix.packed, {rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(n_in)});
      ASSERT_TRUE(is_same(first.data(), alone.data(), n_out)) << ggml_type_name(type);
      n_compared += alone.size() + n_out;
    }
  }
  EXPECT_GT(n_compared, 100'000U);
}

TEST(Product, of_a_row_with_what_is_no_number_is_none_and_others_are_as_without) {
  const ToyMatrix matrix(GGML_TYPE_Q4_K, 256, 32);
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> rows = random_floats(256 * 3, 9);
    for (const ProductKernels* kernels : kernel_sets()) {
      const std::vector<float> before = multiply(*kernels, matrix.packed, rows);
      std::vector<float> others = rows;
      others[256 + 40] = odd;
      const std::vector<float> out = multiply(*kernels, matrix.packed, others);
      for (std::size_t i = 32; i < 64; ++i) EXPECT_TRUE(std::isnan(out[i]));
      EXPECT_TRUE(is_same(out.data(), before.data(), 32) && is_same(out.data() + 64, before.data() + 64, 32));
    }
  }
  for (const float small : {0.0F, 1e-38F, -1e-44F}) {
    for (const float x : multiply(kPortableProductKernels, matrix.packed, std::vector<float>(256, small)))
      EXPECT_EQ(x, 0.0F);
  }
}

TEST(Product, is_ours_for_these_types_where_rows_are_whole_blocks_and_plain_loops_are_not_all_there_is) {
  const bool has_fast_loops = kernel_sets().size() > 1;
  for (const auto& [type, kind] : kTypes) {
    EXPECT_EQ(packed_kind(type, 256), has_fast_loops ? std::optional(kind) : std::nullopt) << ggml_type_name(type);
    EXPECT_EQ(packed_kind(type, 40), std::nullopt);
  }
  EXPECT_EQ(packed_kind(GGML_TYPE_Q2_K, 256), std::nullopt);
}

// The nodes of a graph, two matrices over the same rows.
TEST(Product, of_a_graph_is_the_same_and_other_matrices_are_ggmls) {
  const std::unique_ptr<Backend> backend = Backend::open("cpu", 2).value();
  const ToyMatrix up(GGML_TYPE_Q8_0, 512, 72);
  const ToyMatrix gate(GGML_TYPE_Q6_K, 512, 40);
  for (const std::int64_t n_rows : {1, 2, 17, 100}) {
    const std::vector<float> rows = random_floats(static_cast<std::size_t>(512 * n_rows), 11);
    const ggml_context_ptr context(ggml_init({32 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true}));
    const ggml_context_ptr stand_ins(ggml_init({4 * ggml_tensor_overhead(), nullptr, true}));
    ggml_tensor* const first = ggml_new_tensor_2d(stand_ins.get(), GGML_TYPE_Q8_0, 512, 72);
    ggml_tensor* const second = ggml_new_tensor_2d(stand_ins.get(), GGML_TYPE_Q6_K, 512, 40);
    PackedMatrices packed;
    for (const auto& [tensor, matrix] : {std::pair(first, &up), std::pair(second, &gate)}) {
      PackedMatrix own = PackedMatrix::create(kind_of(tensor->type), 512, matrix->packed.n_out()).value();
      own.pack(matrix->bytes);
      packed.emplace(tensor, std::move(own));
    }
    Team team(2);
    ProductNodes nodes(context.get(), packed, team);
    ggml_tensor* const in = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, 512, n_rows);
    ggml_tensor* const plain = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, 512, 3);
    ggml_tensor* const one = nodes.multiply(first, in);
    ggml_tensor* const two = nodes.multiply(second, in);
    ggml_tensor* const three = nodes.multiply(plain, in);
    ggml_cgraph* const graph = ggml_new_graph(context.get());
    for (ggml_tensor* const node : {one, two, three}) {
      ggml_set_output(node);
      ggml_build_forward_expand(graph, node);
    }
    const ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors(context.get(), backend->handle()));
    ggml_backend_tensor_set(in, rows.data(), 0, rows.size() * sizeof(float));
    ggml_backend_tensor_set(plain, rows.data(), 0, 512 * sizeof(float));
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(backend->compute(graph).ok());
      EXPECT_TRUE(is_same(static_cast<const float*>(one->data),
                          multiply(kPortableProductKernels, up.packed, rows).data(),
                          static_cast<std::size_t>(72 * n_rows)));
      EXPECT_TRUE(is_same(static_cast<const float*>(two->data),
                          multiply(kPortableProductKernels, gate.packed, rows).data(),
                          static_cast<std::size_t>(40 * n_rows)));
      EXPECT_EQ(three->op, GGML_OP_MUL_MAT);
    }
  }
}

}  // namespace
}  // namespace ebb
