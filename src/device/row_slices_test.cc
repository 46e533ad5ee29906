#include "device/row_slices.h"

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include "device/backend.h"

namespace ebb {
namespace {

constexpr std::int64_t kHeadDim = 8;
constexpr std::int64_t kWidth = 48;
constexpr std::int64_t kVocab = 50;

// An operation of ours: twice its source, a part of the elements each.
void run_double(ggml_tensor* dst, int ith, int nth, void* team) {
  share_operation(*static_cast<Team*>(team), ith, nth, [dst](std::int32_t part, std::int32_t n_parts) {
    const auto* const from = static_cast<const float*>(dst->src[0]->data);
    for (std::int64_t i = part; i < ggml_nelements(dst); i += n_parts) static_cast<float*>(dst->data)[i] = 2 * from[i];
  });
}

// A layer's like: rows that are looked up, normed and turned, an operation of ours, what is added and gated, and one row of it in the end.
class Layer {
 public:
  Layer(ggml_backend* backend, Team& team, std::int64_t n_rows)
      : context_(ggml_init({.mem_size = 64 * ggml_tensor_overhead() + ggml_graph_overhead(),
                            .mem_buffer = nullptr,
                            .no_alloc = true})),
        given_(ggml_init({.mem_size = 8 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true})),
        allocator_(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend))) {
    ggml_context* const c = context_.get();
    ggml_tensor* const table = fill_later(ggml_new_tensor_2d(given_.get(), GGML_TYPE_F32, kWidth, kVocab));
    ggml_tensor* const weight = fill_later(ggml_new_tensor_1d(given_.get(), GGML_TYPE_F32, kWidth));
    ggml_tensor* const ids = ggml_new_tensor_1d(given_.get(), GGML_TYPE_I32, n_rows);
    ggml_tensor* const last = ggml_new_tensor_1d(given_.get(), GGML_TYPE_I32, 1);
    graph_ = ggml_new_graph(c);

    ggml_tensor* const x = ggml_scale(c, ggml_get_rows(c, table, ids), 1.5F);
    ggml_tensor* const normed = ggml_mul(c, ggml_rms_norm(c, x, 1e-5F), weight);
    ggml_tensor* const heads = ggml_reshape_3d(c, normed, kHeadDim, kWidth / kHeadDim, n_rows);
    ggml_tensor* turned =
        ggml_rope_ext(c, heads, ids, nullptr, kHeadDim, GGML_ROPE_TYPE_NEOX, 0, 1e4F, 1.0F, 0.0F, 1.0F, 32.0F, 1.0F);
    ggml_tensor* doubled = ggml_custom_4d(c, GGML_TYPE_F32, kHeadDim, kWidth / kHeadDim, n_rows, 1, &turned, 1,
                                          run_double, GGML_N_TASKS_MAX, &team);
    ggml_tensor* const y = ggml_add(c, ggml_reshape_2d(c, doubled, kWidth, n_rows), x);
    ggml_tensor* const gated = ggml_swiglu_split(c, ggml_mul(c, ggml_rms_norm(c, y, 1e-5F), weight), y);
    ggml_tensor* const z = ggml_add(c, gated, y);
    all_ = ggml_tanh(c, z);
    one_ = ggml_mul(c, ggml_rms_norm(c, ggml_get_rows(c, z, last), 1e-5F), weight);
    for (ggml_tensor* const out : {all_, one_}) {
      ggml_set_output(out);
      ggml_build_forward_expand(graph_, out);
    }

    buffer_.reset(ggml_backend_alloc_ctx_tensors(given_.get(), backend));
    EXPECT_TRUE(ggml_gallocr_alloc_graph(allocator_.get(), graph_));
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (ggml_tensor* const t : filled_) {
      for (std::int64_t i = 0; i < ggml_nelements(t); ++i) static_cast<float*>(t->data)[i] = normal(random);
    }
    for (std::int64_t i = 0; i < n_rows; ++i)
      static_cast<std::int32_t*>(ids->data)[i] = static_cast<int>(i * 7 % kVocab);
    *static_cast<std::int32_t*>(last->data) = static_cast<std::int32_t>(n_rows - 1);
  }

  [[nodiscard]] ggml_cgraph* graph() const { return graph_; }
  [[nodiscard]] std::vector<float> results() const {
    std::vector<float> values;
    for (const ggml_tensor* const t : {all_, one_}) {
      const auto* const begin = static_cast<const float*>(t->data);
      values.insert(values.end(), begin, begin + ggml_nelements(t));
    }
    return values;
  }

 private:
  ggml_tensor* fill_later(ggml_tensor* t) {
    filled_.push_back(t);
    return t;
  }

  ggml_context_ptr context_;
  ggml_context_ptr given_;
  ggml_gallocr_ptr allocator_;
  ggml_backend_buffer_ptr buffer_;
  ggml_cgraph* graph_ = nullptr;
  ggml_tensor* all_ = nullptr;
  ggml_tensor* one_ = nullptr;
  std::vector<ggml_tensor*> filled_;
};

// The allocator lays what is not needed any more under what comes, so that slices would write over others' rows if chains were too long.
TEST(RowSlices, has_the_bits_of_ggml_whatever_the_rows_and_threads) {
  const ggml_backend_ptr backend(ggml_backend_cpu_init());
  ggml_backend_cpu_set_n_threads(backend.get(), 1);
  for (const std::int64_t n_rows : {2L, 24L, 33L, kWidth, 200L}) {
    for (const int n_threads : {1, 2, 3, 7}) {
      Team team(n_threads);
      const Layer whole(backend.get(), team, n_rows);
      ASSERT_EQ(ggml_backend_graph_compute(backend.get(), whole.graph()), GGML_STATUS_SUCCESS);
      const Layer sliced(backend.get(), team, n_rows);
      ASSERT_TRUE(RowSlices::can_compute(sliced.graph()));
      RowSlices slices(team);
      EXPECT_TRUE(slices.compute(sliced.graph(), n_rows, [] { return false; }));
      EXPECT_EQ(sliced.results(), whole.results()) << n_rows << " rows, " << n_threads << " threads";
    }
  }
}

// Narrow rows, and where they lay wide ones: a slice that went on to these would write over narrow rows that another has yet to read.
TEST(RowSlices, goes_on_to_what_lies_elsewhere_only_when_all_rows_are_there) {
  constexpr std::int64_t kRows = 64;
  const ggml_context_ptr context(ggml_init(
      {.mem_size = 16 * ggml_tensor_overhead() + ggml_graph_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
  ggml_context* const c = context.get();
  ggml_tensor* const x = ggml_new_tensor_2d(c, GGML_TYPE_F32, 16, kRows);
  ggml_tensor* const narrow = ggml_swiglu(c, x);
  ggml_tensor* const kept = ggml_scale(c, narrow, 3.0F);
  ggml_tensor* const wide = ggml_scale(c, x, 2.0F);
  ggml_cgraph* const graph = ggml_new_graph(c);
  ggml_build_forward_expand(graph, kept);
  ggml_build_forward_expand(graph, wide);

  const auto n_values = static_cast<std::size_t>(ggml_nelements(x));
  std::vector<float> input(n_values);
  for (std::size_t i = 0; i < n_values; ++i) input[i] = static_cast<float>(i % 13) - 6.0F;
  std::vector<float> shared(n_values), results(n_values / 2);
  x->data = input.data();
  narrow->data = shared.data();
  kept->data = results.data();
  wide->data = shared.data();

  const auto gate = [&](std::size_t i) { return input[i / 8 * 16 + i % 8]; };
  const auto up = [&](std::size_t i) { return input[i / 8 * 16 + 8 + i % 8]; };
  for (const int n_threads : {1, 4}) {
    Team team(n_threads);
    RowSlices slices(team);
    ASSERT_TRUE(slices.compute(graph, kRows, [] { return false; }));
    for (std::size_t i = 0; i < results.size(); ++i) {
      ASSERT_NEAR(results[i], 3.0F * gate(i) / (1.0F + std::exp(-gate(i))) * up(i), 1e-4F) << i;
    }
    for (std::size_t i = 0; i < n_values; ++i) ASSERT_EQ(shared[i], 2.0F * input[i]) << i;
  }
}

TEST(RowSlices, says_that_it_was_stopped) {
  const ggml_backend_ptr backend(ggml_backend_cpu_init());
  Team team(2);
  const Layer layer(backend.get(), team, 32);
  RowSlices slices(team);
  int n_asked = 0;
  EXPECT_FALSE(slices.compute(layer.graph(), 32, [&] { return ++n_asked == 2; }));
  EXPECT_EQ(n_asked, 2);
}

TEST(RowSlices, leaves_graphs_with_products_of_ggml_alone) {
  const ggml_context_ptr context(ggml_init(
      {.mem_size = 8 * ggml_tensor_overhead() + ggml_graph_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
  ggml_tensor* const a = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, 8, 8);
  ggml_cgraph* const graph = ggml_new_graph(context.get());
  ggml_build_forward_expand(graph, ggml_mul_mat(context.get(), a, a));
  EXPECT_FALSE(RowSlices::can_compute(graph));
}

}  // namespace
}  // namespace ebb
