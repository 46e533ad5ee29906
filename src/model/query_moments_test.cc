// Sums of queries: those of a plain computation in float64, with the same bits however rows come.
#include "model/query_moments.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "base/to_size.h"
#include "model/attention.h"
#include "model/toy_attention.h"

namespace ebb::query_moments_test {
namespace {

constexpr std::int32_t kLayers = 2;
constexpr std::int32_t kHeads = 3;
constexpr std::int32_t kRows = 100;
constexpr Position kFrom(4);

// Queries [layer][row][head][n_dims] of a sequence from position 0 on.
class QueryMomentsTest : public ::testing::TestWithParam<std::int32_t> {
 protected:
  QueryMomentsTest() {
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0.5F, 2.0F);
    for (float& x : q_) x = normal(random);
  }

  [[nodiscard]] float& at(std::int32_t layer, std::int32_t row, std::int32_t head, std::int32_t d) {
    return q_[to_size(((layer * kRows + row) * kHeads + head) * n_dims() + d)];
  }
  [[nodiscard]] static std::int32_t n_dims() { return GetParam(); }
  [[nodiscard]] static QueryMoments none() {
    return {{.n_layers = kLayers, .n_heads = kHeads, .n_dims = n_dims()}, kFrom};
  }

  // Rows [begin, end) of all layers.
  void add(QueryMoments& moments, std::int32_t begin, std::int32_t end, std::int32_t n_threads = 1) {
    for (std::int32_t layer = 0; layer < kLayers; ++layer) {
      toy::run_threads(n_threads, [&](std::int32_t ith) {
        moments.add(LayerIndex(layer),
                    {.q = &at(layer, begin, 0, 0),
                     .row_stride = to_size(kHeads * n_dims()),
                     .head_stride = to_size(n_dims()),
                     .first = Position(begin),
                     .n_rows = end - begin},
                    ith, n_threads);
      });
    }
  }

  std::vector<float> q_ = std::vector<float>(to_size(kLayers * kRows * kHeads * n_dims()));
};

TEST_P(QueryMomentsTest, are_the_mean_and_the_covariance_of_rows_behind_the_first_tokens) {
  QueryMoments moments = none();
  add(moments, 0, kRows);
  const auto n = static_cast<double>(kRows - kFrom.value());
  for (std::int32_t layer = 0; layer < kLayers; ++layer) {
    for (std::int32_t head = 0; head < kHeads; ++head) {
      const std::size_t of = to_size(layer * kHeads + head);
      ASSERT_EQ(moments.n_queries(of), kRows - kFrom.value());
      std::vector<double> mean(to_size(n_dims()), 0.0);
      for (std::int32_t d = 0; d < n_dims(); ++d) {
        for (std::int32_t row = kFrom.value(); row < kRows; ++row)
          mean[to_size(d)] += double{at(layer, row, head, d)} / n;
        ASSERT_NEAR(moments.mean(of)[to_size(d)], mean[to_size(d)], 1e-12);
      }
      const std::vector<double> covariance = moments.covariance(of);
      for (std::int32_t i = 0; i < n_dims(); ++i) {
        for (std::int32_t j = 0; j < n_dims(); ++j) {
          double expected = 0.0;
          for (std::int32_t row = kFrom.value(); row < kRows; ++row) {
            expected += (double{at(layer, row, head, i)} - mean[to_size(i)]) *
                        (double{at(layer, row, head, j)} - mean[to_size(j)]) / n;
          }
          ASSERT_NEAR(covariance[to_size(i * n_dims() + j)], expected, 1e-11) << i << " " << j;
        }
      }
    }
  }
}

TEST_P(QueryMomentsTest, have_the_same_bits_however_rows_are_cut_into_steps_whichever_threads_and_kernels_add_them) {
  QueryMoments whole = none();
  add(whole, 0, kRows);
  const KernelSet before = current_kernel_set();
  for (const KernelSet set : {KernelSet::kPortable, KernelSet::kAvx2, KernelSet::kAvx512}) {
    if (!try_set_kernel_set(set)) continue;
    for (const std::int32_t n_at_once : {1, 3, 32, 57}) {
      QueryMoments cut = none();
      for (std::int32_t begin = 0; begin < kRows; begin += n_at_once) {
        add(cut, begin, std::min(kRows, begin + n_at_once), 1 + begin % 4);
      }
      EXPECT_EQ(cut.image().sums, whole.image().sums) << kernel_set_name(set) << " " << n_at_once;
      EXPECT_EQ(cut.image().products, whole.image().products) << kernel_set_name(set) << " " << n_at_once;
      EXPECT_EQ(cut.image().n_queries, whole.image().n_queries);
    }
  }
  EXPECT_TRUE(try_set_kernel_set(before));
}

TEST_P(QueryMomentsTest, of_rows_that_are_no_numbers_are_those_of_the_others) {
  QueryMoments expected = none();
  add(expected, 0, 10);
  at(0, 10, 1, n_dims() - 1) = std::numeric_limits<float>::quiet_NaN();
  at(0, 11, 1, 0) = std::numeric_limits<float>::infinity();
  at(0, 12, 1, 0) = 1e30F;
  QueryMoments moments = none();
  add(moments, 0, 13);
  EXPECT_EQ(moments.n_queries(1), expected.n_queries(1));
  EXPECT_EQ(moments.mean(1), expected.mean(1));
  EXPECT_EQ(moments.covariance(1), expected.covariance(1));
  EXPECT_EQ(moments.n_queries(0), expected.n_queries(0) + 3) << "other heads count for themselves";
}

TEST_P(QueryMomentsTest, of_no_rows_are_zeros) {
  QueryMoments moments = none();
  add(moments, 0, kFrom.value());
  EXPECT_EQ(moments.n_queries(0), 0);
  EXPECT_EQ(moments.mean(0), std::vector<double>(to_size(n_dims()), 0.0));
  EXPECT_EQ(moments.covariance(0), std::vector<double>(to_size(n_dims() * n_dims()), 0.0));
}

TEST_P(QueryMomentsTest, go_on_from_an_image_with_the_same_bits_and_refuse_what_no_image_is) {
  QueryMoments whole = none();
  add(whole, 0, kRows);
  QueryMoments first = none();
  add(first, 0, 40);
  const QueryImage image = first.image();
  QueryMoments second = none();
  ASSERT_TRUE(second.restore(image).ok());
  add(second, 40, kRows);
  EXPECT_EQ(second.image().products, whole.image().products);
  EXPECT_EQ(second.image().sums, whole.image().sums);

  ASSERT_TRUE(none().restore({}).ok()) << "none were counted";
  const auto refused = [&](const auto& damage) {
    QueryImage damaged = image;
    damage(damaged);
    QueryMoments moments = none();
    EXPECT_EQ(moments.restore(damaged).code(), Code::kDamaged);
    EXPECT_EQ(moments.n_queries(0), 0) << "nothing is taken of it";
  };
  refused([](QueryImage& i) { i.n_dims += 2; });
  refused([](QueryImage& i) { i.n_queries.pop_back(); });
  refused([](QueryImage& i) { i.sums.push_back(0.0); });
  refused([](QueryImage& i) { i.products.pop_back(); });
  refused([](QueryImage& i) { i.n_queries[1] = -1; });
  refused([](QueryImage& i) { i.n_queries[1] = std::int64_t{1} << 60; });
  refused([](QueryImage& i) { i.sums[2] = std::numeric_limits<double>::quiet_NaN(); });
  refused([](QueryImage& i) { i.products[2] = std::numeric_limits<double>::infinity(); });
}

INSTANTIATE_TEST_SUITE_P(Sizes, QueryMomentsTest, ::testing::Values(2, 16, 40, 64),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace ebb::query_moments_test
