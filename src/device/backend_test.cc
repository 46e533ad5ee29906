#include "device/backend.h"

#include <memory>
#include <vector>

#include <ggml-backend.h>
#include <ggml.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

// sum = a chain of additions of a tensor to itself; `on_node` runs in the middle of it.
class Chain {
 public:
  explicit Chain(Backend& backend, ggml_custom1_op_t on_node = nullptr, void* user_data = nullptr)
      : context_(ggml_init({.mem_size = 64 * ggml_tensor_overhead() + ggml_graph_overhead(),
                            .mem_buffer = nullptr,
                            .no_alloc = true}),
                 ggml_free) {
    ggml_tensor* x = ggml_new_tensor_1d(context_.get(), GGML_TYPE_F32, 64);
    first_ = x;
    if (on_node != nullptr) x = ggml_map_custom1(context_.get(), x, on_node, 1, user_data);
    for (int i = 0; i < 10; ++i) x = ggml_add(context_.get(), x, x);
    sum_ = x;
    graph_ = ggml_new_graph(context_.get());
    ggml_build_forward_expand(graph_, sum_);
    buffer_.reset(ggml_backend_alloc_ctx_tensors(context_.get(), backend.handle()));
    ggml_backend_buffer_clear(buffer_.get(), 0);
    const std::vector<float> ones(64, 1.0F);
    ggml_backend_tensor_set(first_, ones.data(), 0, ggml_nbytes(first_));
  }

  ggml_cgraph* graph() { return graph_; }
  float sum() const {
    float value = 0;
    ggml_backend_tensor_get(sum_, &value, 0, sizeof value);
    return value;
  }

 private:
  std::unique_ptr<ggml_context, decltype(&ggml_free)> context_;
  std::unique_ptr<ggml_backend_buffer, decltype(&ggml_backend_buffer_free)> buffer_{nullptr, ggml_backend_buffer_free};
  ggml_cgraph* graph_ = nullptr;
  ggml_tensor* first_ = nullptr;
  ggml_tensor* sum_ = nullptr;
};

std::unique_ptr<Backend> open_cpu() { return std::move(Backend::open("cpu", 2)).value(); }

// Copies its input through, and asks to stop, as a signal handler would while the graph runs.
void cancel_midway(ggml_tensor* dst, const ggml_tensor* source, int, int, void* backend) {
  for (std::int64_t i = 0; i < ggml_nelements(dst); ++i) {
    static_cast<float*>(dst->data)[i] = static_cast<const float*>(source->data)[i];
  }
  static_cast<Backend*>(backend)->request_cancel();
}

TEST(Backend, refuses_an_unknown_name_and_says_which_there_are) {
  const auto backend = Backend::open("abacus", 1);
  ASSERT_FALSE(backend.ok());
  EXPECT_EQ(backend.status().code(), Code::kNotFound);
  EXPECT_THAT(backend.status().message(), testing::HasSubstr("'abacus'"));
  EXPECT_THAT(backend.status().message(), testing::HasSubstr("cpu"));
}

TEST(Backend, refuses_thread_counts_out_of_bounds) {
  for (const std::int32_t n_threads : {-1, 513, INT32_MAX}) {
    const auto backend = Backend::open("cpu", n_threads);
    ASSERT_FALSE(backend.ok()) << n_threads;
    EXPECT_EQ(backend.status().code(), Code::kInvalidArgument);
  }
}

TEST(Backend, takes_thread_counts_at_the_bounds_and_one_per_core_for_zero) {
  EXPECT_EQ((*Backend::open("cpu", 1))->n_threads(), 1);
  EXPECT_EQ((*Backend::open("cpu", 512))->n_threads(), 512);
  EXPECT_EQ((*Backend::open("cpu", 0))->n_threads(), default_threads());
  EXPECT_GE(default_threads(), 1);
}

TEST(Backend, opens_every_name_that_it_lists) {
  const auto names = Backend::names();
  EXPECT_THAT(names, testing::Contains("cpu"));
  for (const std::string& name : names) EXPECT_TRUE(Backend::open(name, 1).ok()) << name;
  EXPECT_TRUE(open_cpu()->is_cpu());
}

TEST(Backend, computes_a_graph_with_any_number_of_threads) {
  for (const std::int32_t n_threads : {1, 2, 3}) {
    const std::unique_ptr<Backend> backend = Backend::open("cpu", n_threads).value();
    EXPECT_EQ(backend->n_threads(), n_threads);
    Chain chain(*backend);
    EXPECT_TRUE(backend->compute(chain.graph()).ok());
    EXPECT_EQ(chain.sum(), 1024.0F);
  }
}

TEST(Backend, refuses_to_compute_once_cancelled_until_cleared) {
  const auto backend = open_cpu();
  Chain chain(*backend);
  backend->request_cancel();
  EXPECT_EQ(backend->compute(chain.graph()).code(), Code::kCancelled);
  EXPECT_EQ(chain.sum(), 0.0F);
  backend->clear_cancel();
  EXPECT_TRUE(backend->compute(chain.graph()).ok());
  EXPECT_EQ(chain.sum(), 1024.0F);
}

TEST(Backend, stops_a_computation_under_way) {
  const auto backend = open_cpu();
  Chain chain(*backend, cancel_midway, backend.get());
  EXPECT_EQ(backend->compute(chain.graph()).code(), Code::kCancelled);
  EXPECT_EQ(chain.sum(), 0.0F);
}

}  // namespace
}  // namespace ebb
