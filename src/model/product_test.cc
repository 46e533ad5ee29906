#include "model/product.h"

#include <cmath>
#include <random>
#include <vector>

#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include "ggml.h"

#include "gtest/gtest.h"

namespace ebb {
namespace {

// The memory that holds repacked matrices on this processor; null where ggml has none.
ggml_backend_buffer_type_t repacked_memory() {
  ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  const auto get_extra = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(
      ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts"));
  for (ggml_backend_buffer_type_t* type = get_extra(device); type != nullptr && *type != nullptr; ++type) {
    if (std::string_view(ggml_backend_buft_name(*type)) == "CPU_REPACK") return *type;
  }
  return nullptr;
}

// Where ggml must have the layout: a test that finds none there fails and does not pass over it.
bool interleaves_by_eight() { return ggml_cpu_has_avx2() != 0; }

std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& v : values) v = normal(random);
  return values;
}

std::vector<std::byte> random_q4_k(std::int64_t n_in, std::int64_t n_out) {
  const std::vector<float> values = random_floats(static_cast<std::size_t>(n_in * n_out), 7);
  std::vector<std::byte> bytes(ggml_row_size(GGML_TYPE_Q4_K, n_in) * static_cast<std::size_t>(n_out));
  ggml_quantize_chunk(GGML_TYPE_Q4_K, values.data(), bytes.data(), 0, n_out, n_in, nullptr);
  return bytes;
}

// weight x rows with the weight in `memory`, by `product`.
template <typename Product>
std::vector<float> compute(ggml_backend_buffer_type_t memory, std::int64_t n_rows, Product product) {
  constexpr std::int64_t kIn = 512;
  constexpr std::int64_t kOut = 72;
  const ggml_context_ptr weights(ggml_init({4 * ggml_tensor_overhead(), nullptr, true}));
  ggml_tensor* weight = ggml_new_tensor_2d(weights.get(), GGML_TYPE_Q4_K, kIn, kOut);
  const ggml_backend_buffer_ptr held(ggml_backend_alloc_ctx_tensors_from_buft(weights.get(), memory));
  const std::vector<std::byte> bytes = random_q4_k(kIn, kOut);
  ggml_backend_tensor_set(weight, bytes.data(), 0, bytes.size());

  const ggml_context_ptr context(ggml_init({16 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true}));
  ggml_tensor* rows = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, kIn, n_rows);
  ggml_tensor* out = product(context.get(), weight, rows);
  ggml_cgraph* graph = ggml_new_graph(context.get());
  ggml_build_forward_expand(graph, out);
  const ggml_backend_ptr backend(ggml_backend_cpu_init());
  ggml_backend_cpu_set_n_threads(backend.get(), 3);
  const ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors(context.get(), backend.get()));
  const std::vector<float> values = random_floats(static_cast<std::size_t>(kIn * n_rows), 8);
  ggml_backend_tensor_set(rows, values.data(), 0, ggml_nbytes(rows));
  EXPECT_EQ(ggml_backend_graph_compute(backend.get(), graph), GGML_STATUS_SUCCESS);
  std::vector<float> result(static_cast<std::size_t>(kOut * n_rows));
  ggml_backend_tensor_get(out, result.data(), 0, ggml_nbytes(out));
  return result;
}

TEST(Product, many_rows_of_a_repacked_matrix_give_the_bits_of_the_plain_one) {
  ggml_backend_buffer_type_t memory = repacked_memory();
  if (!interleaves_by_eight()) GTEST_SKIP() << "ggml interleaves Q4_K by eight rows from AVX2 on";
  ASSERT_NE(memory, nullptr);
  ASSERT_TRUE(can_unpack_q4_k(memory)) << "ggml's layout is no longer the one that unpack_q4_k knows";
  for (const std::int64_t n_rows : {48, 64, 512}) {
    const std::vector<float> ours = compute(memory, n_rows, multiply);
    EXPECT_EQ(ours, compute(ggml_backend_cpu_buffer_type(), n_rows, ggml_mul_mat)) << n_rows;
  }
}

TEST(Product, few_rows_use_the_repacked_matrix_as_it_lies) {
  ggml_backend_buffer_type_t memory = repacked_memory();
  if (!interleaves_by_eight()) GTEST_SKIP() << "ggml interleaves Q4_K by eight rows from AVX2 on";
  ASSERT_NE(memory, nullptr);
  for (const std::int64_t n_rows : {1, 2, 47}) {
    EXPECT_EQ(compute(memory, n_rows, multiply), compute(memory, n_rows, ggml_mul_mat)) << n_rows;
  }
}

TEST(Product, any_bytes_come_back_whatever_the_number_of_parts) {
  ggml_backend_buffer_type_t memory = repacked_memory();
  if (!interleaves_by_eight()) GTEST_SKIP() << "ggml interleaves Q4_K by eight rows from AVX2 on";
  ASSERT_NE(memory, nullptr);
  ASSERT_TRUE(can_unpack_q4_k(memory)) << "ggml's layout is no longer the one that unpack_q4_k knows";
  const ggml_context_ptr context(ggml_init({2 * ggml_tensor_overhead(), nullptr, true}));
  constexpr PackedRows kRows = {.n_in = 768, .n_rows = 40};
  ggml_tensor* tensor = ggml_new_tensor_2d(context.get(), GGML_TYPE_Q4_K, kRows.n_in, kRows.n_rows);
  const ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors_from_buft(context.get(), memory));
  std::mt19937 random(9);
  std::vector<std::byte> plain(ggml_nbytes(tensor));
  for (std::byte& b : plain) b = static_cast<std::byte>(random());
  ggml_backend_tensor_set(tensor, plain.data(), 0, plain.size());
  for (const int n_parts : {1, 2, 3, 5, 8}) {
    std::vector<std::byte> unpacked(plain.size());
    for (int part = 0; part < n_parts; ++part) {
      unpack_q4_k({static_cast<const std::byte*>(tensor->data), plain.size()}, unpacked, kRows, part, n_parts);
    }
    EXPECT_EQ(plain, unpacked) << n_parts;
  }
}

TEST(Product, memory_that_does_not_repack_is_not_unpacked) {
  EXPECT_FALSE(can_unpack_q4_k(ggml_backend_cpu_buffer_type()));
}

}  // namespace
}  // namespace ebb
