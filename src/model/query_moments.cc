#include "model/query_moments.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/to_size.h"
#include "cache/frame_layout.h"
#include "model/expected_kernels.h"

namespace ebb {
namespace {

// As of keys (model/frame_rows.cc): beyond what f16 holds by far, and sums of its squares are still numbers.
constexpr float kLargestQuery = 1e15F;

// More: no faster, since a triangle's tile is in registers by then.
constexpr std::size_t kMostRowsAtOnce = 32;
// Numbers of rows that are added at once: they stay in the processor's first cache, and on the stack.
constexpr std::size_t kRoomOfRows = 8192;
static_assert(kRoomOfRows >= to_size(kMaxHeadDim));

// More than any session computes.
constexpr std::int64_t kMostQueriesCounted = std::int64_t{1} << 50;

bool is_query(const float* q, std::size_t n_dims) {
  return std::all_of(q, q + n_dims, [](float x) { return std::abs(x) <= kLargestQuery; });
}

}  // namespace

QueryMoments::QueryMoments(const Shape& shape, Position from) : shape_(shape), from_(from) {
  EBB_CHECK(shape.n_layers > 0 && shape.n_heads > 0 && shape.n_dims > 0 && shape.n_dims <= kMaxHeadDim,
            "queries of {} layers with {} heads of {}", shape.n_layers, shape.n_heads, shape.n_dims);
  const std::size_t n_heads = to_size(shape.n_layers) * to_size(shape.n_heads);
  all_.n_dims = shape.n_dims;
  all_.n_queries.resize(n_heads);
  all_.sums.resize(n_heads * n_dims());
  all_.products.resize(n_heads * QueryImage::n_products(n_dims()));
}

void QueryMoments::add(LayerIndex layer, const Rows& rows, std::int32_t ith, std::int32_t n_threads) {
  for (std::int32_t h = ith; h < shape_.n_heads; h += n_threads) {
    add_head(layer.index() * to_size(shape_.n_heads) + to_size(h), rows, rows.q + to_size(h) * rows.head_stride);
  }
}

void QueryMoments::add_head(std::size_t head, const Rows& rows, const float* q) {
  std::array<double, kRoomOfRows> some;
  const std::size_t n_at_once = std::min(kMostRowsAtOnce, some.size() / n_dims());
  double* const sums = all_.sums.data() + head * n_dims();
  double* const products = all_.products.data() + head * QueryImage::n_products(n_dims());
  std::size_t n = 0;
  const auto add_some = [&] {
    expected_kernels().add_products(some.data(), n, n_dims(), products);
    for (std::size_t r = 0; r < n; ++r) {
      for (std::size_t d = 0; d < n_dims(); ++d) sums[d] += some[r * n_dims() + d];
    }
    all_.n_queries[head] += static_cast<std::int64_t>(n);
    n = 0;
  };
  for (std::int32_t row = std::max(0, from_ - rows.first); row < rows.n_rows; ++row) {
    const float* const query = q + to_size(row) * rows.row_stride;
    if (!is_query(query, n_dims())) continue;
    std::copy_n(query, n_dims(), some.data() + n++ * n_dims());
    if (n == n_at_once) add_some();
  }
  if (n > 0) add_some();
}

std::vector<double> QueryMoments::mean(std::size_t head) const {
  const auto first = all_.sums.begin() + static_cast<std::ptrdiff_t>(head * n_dims());
  std::vector<double> mean(first, first + static_cast<std::ptrdiff_t>(n_dims()));
  const auto n = static_cast<double>(std::max<std::int64_t>(1, n_queries(head)));
  for (double& x : mean) x /= n;
  return mean;
}

std::vector<double> QueryMoments::covariance(std::size_t head) const {
  const std::vector<double> mean = this->mean(head);
  const double* products = all_.products.data() + head * QueryImage::n_products(n_dims());
  const auto n = static_cast<double>(std::max<std::int64_t>(1, n_queries(head)));
  std::vector<double> covariance(n_dims() * n_dims());
  for (std::size_t i = 0; i < n_dims(); ++i) {
    for (std::size_t j = i; j < n_dims(); ++j) {
      const double value = *products++ / n - mean[i] * mean[j];
      covariance[i * n_dims() + j] = covariance[j * n_dims() + i] = value;
    }
  }
  return covariance;
}

Status QueryMoments::restore(const QueryImage& image) {
  if (image.n_dims == 0) return {};
  if (image.n_dims != all_.n_dims || image.n_queries.size() != all_.n_queries.size() ||
      image.sums.size() != all_.sums.size() || image.products.size() != all_.products.size()) {
    return error(Code::kDamaged, "notes on queries of {} heads of {}, and the model has {} of {}",
                 image.n_queries.size(), image.n_dims, all_.n_queries.size(), all_.n_dims);
  }
  const bool counts =
      std::ranges::all_of(image.n_queries, [](std::int64_t n) { return n >= 0 && n < kMostQueriesCounted; });
  const auto are_sums = [](const std::vector<double>& sums, double most) {
    return std::ranges::all_of(sums, [most](double x) { return std::abs(x) <= most; });
  };
  constexpr double kMostSum = double{kLargestQuery} * static_cast<double>(kMostQueriesCounted);
  if (!counts || !are_sums(image.sums, kMostSum) || !are_sums(image.products, kMostSum * double{kLargestQuery})) {
    return error(Code::kDamaged, "notes on queries that no session writes");
  }
  all_ = image;
  return {};
}

}  // namespace ebb
