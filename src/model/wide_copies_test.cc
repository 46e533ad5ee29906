#include "model/wide_copies.h"

#include <cstring>
#include <vector>

#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml.h"

#include "gtest/gtest.h"

namespace ebb {
namespace {

constexpr std::int64_t kManyRows = 8;

#if defined(__x86_64__)
constexpr bool kHasCopies = true;
#else
constexpr bool kHasCopies = false;
#endif

// Matrices [n_in, n_out] in the CPU's memory, of values that every float type holds.
class Matrices {
 public:
  explicit Matrices(const std::vector<ggml_type>& types, std::int64_t n_in = 64, std::int64_t n_out = 24)
      : context_(ggml_init({types.size() * ggml_tensor_overhead(), nullptr, true})) {
    for (const ggml_type type : types) tensors.push_back(ggml_new_tensor_2d(context_.get(), type, n_in, n_out));
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(context_.get(), ggml_backend_cpu_buffer_type()));
    for (std::int64_t i = 0; i < n_in * n_out; ++i) values.push_back(static_cast<float>(i % 255 - 127) / 64.0F);
    for (ggml_tensor* tensor : tensors) fill(tensor);
  }

  std::vector<ggml_tensor*> tensors;
  std::vector<float> values;

 private:
  void fill(ggml_tensor* tensor) const {
    std::vector<std::byte> bytes(ggml_nbytes(tensor));
    ggml_quantize_chunk(tensor->type, values.data(), bytes.data(), 0, tensor->ne[1], tensor->ne[0], nullptr);
    ggml_backend_tensor_set(tensor, bytes.data(), 0, bytes.size());
  }

  ggml_context_ptr context_;
  ggml_backend_buffer_ptr buffer_;
};

TEST(WideCopies, hold_the_same_values_in_f32) {
  const Matrices matrices({GGML_TYPE_F16, GGML_TYPE_BF16});
  const WideCopies wide(matrices.tensors);
  for (ggml_tensor* matrix : matrices.tensors) {
    const ggml_tensor* copy = wide.choose(matrix, kManyRows);
    ASSERT_EQ(copy != matrix, kHasCopies) << ggml_type_name(matrix->type);
    if (!kHasCopies) continue;
    ASSERT_EQ(copy->type, GGML_TYPE_F32);
    EXPECT_EQ(copy->ne[0], matrix->ne[0]);
    EXPECT_EQ(copy->ne[1], matrix->ne[1]);
    EXPECT_EQ(std::memcmp(copy->data, matrices.values.data(), matrices.values.size() * sizeof(float)), 0);
  }
  EXPECT_EQ(wide.bytes() >= 2 * matrices.values.size() * sizeof(float), kHasCopies);
}

TEST(WideCopies, are_not_for_few_rows) {
  const Matrices matrices({GGML_TYPE_F16});
  const WideCopies wide(matrices.tensors);
  EXPECT_EQ(wide.choose(matrices.tensors[0], 1), matrices.tensors[0]);
  EXPECT_EQ(wide.choose(matrices.tensors[0], kManyRows - 1), matrices.tensors[0]);
}

TEST(WideCopies, are_made_of_half_floats_alone) {
  const Matrices matrices({GGML_TYPE_F32, GGML_TYPE_Q8_0});
  const WideCopies wide(matrices.tensors);
  EXPECT_EQ(wide.bytes(), 0U);
  for (ggml_tensor* matrix : matrices.tensors) EXPECT_EQ(wide.choose(matrix, kManyRows), matrix);
}

TEST(WideCopies, of_a_large_model_there_are_none) {
  const Matrices matrices({GGML_TYPE_F16, GGML_TYPE_F16}, 2048, 2200);  // 36 MB in f32
  const WideCopies wide(matrices.tensors);
  EXPECT_EQ(wide.bytes(), 0U);
  EXPECT_EQ(wide.choose(matrices.tensors[0], kManyRows), matrices.tensors[0]);
}

TEST(WideCopies, of_nothing_there_are_none) {
  const Matrices matrices({GGML_TYPE_F16});
  EXPECT_EQ(WideCopies().choose(matrices.tensors[0], kManyRows), matrices.tensors[0]);
  EXPECT_EQ(WideCopies(std::vector<ggml_tensor*>{}).bytes(), 0U);
}

}  // namespace
}  // namespace ebb
