// QueryMoments: how many queries of one sequence there were, their sums and the sums of their products, by query head.
//
// Of the queries before they are rotated, behind a model's norm of them, so that those of all positions may be added. Mean and
// covariance are what Expected Attention (Devoto et al. 2025, arXiv 2510.00636) is made of (model/query_forecast.h).
//
// A step's rows are added one by one, in position order, in float64; products of floats are exact there. So neither threads, the
// cut of a prompt into steps nor company in a batch change a bit. Each head counts for itself, and everything that was computed
// counts: a step that was broken off in the layers that it reached, tokens that were cut away since too. Rows with anything that is
// no number, or is larger than any query, do not count, nor do positions before `from`: the first tokens are looked at whatever
// comes.
//
// Bytes: 4 (d^2 + 3 d + 4) for each query head of each layer, whatever the length of the session: 9 MB for 16 layers of 32 heads of
// 64, 69 MB for 32 layers of 32 heads of 128. Time: d^2 / 2 products for each row and query head, and of a step of one row all these
// bytes read and written once.
//
// It knows no model, session or policy. Thread rule: add() by all threads of an op; else one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace ebb {

// What a collector has, as it is written down: that of a session at rest.
struct QueryImage {
  // Of a query; 0 where none were ever counted.
  std::int32_t n_dims = 0;
  std::vector<std::int64_t> n_queries;  // [head]
  std::vector<double> sums;             // [head][n_dims]
  std::vector<double> products;         // [head][n_products]: on the diagonal or right of it, row behind row

  [[nodiscard]] static constexpr std::size_t n_products(std::size_t n_dims) { return n_dims * (n_dims + 1) / 2; }
  [[nodiscard]] std::size_t bytes() const {
    return n_queries.size() * sizeof(n_queries[0]) + (sums.size() + products.size()) * sizeof(double);
  }
};

class QueryMoments {
 public:
  struct Shape {
    std::int32_t n_layers = 0;
    std::int32_t n_heads = 0;  // query heads of a layer
    std::int32_t n_dims = 0;
  };
  QueryMoments(const Shape& shape, Position from);

  // Rows of one layer as a graph has them, [row][query head][n_dims], strides in floats; the first is at `first`.
  struct Rows {
    const float* q = nullptr;
    std::size_t row_stride = 0;
    std::size_t head_stride = 0;
    Position first;
    std::int32_t n_rows = 0;
  };
  // Call from threads ith = 0..n_threads-1 of one op. Allocates nothing.
  void add(LayerIndex layer, const Rows& rows, std::int32_t ith, std::int32_t n_threads);

  // Of head layer * n_heads + query head.
  [[nodiscard]] std::int64_t n_queries(std::size_t head) const { return all_.n_queries[head]; }
  [[nodiscard]] std::size_t n_dims() const { return static_cast<std::size_t>(shape_.n_dims); }
  // Zeros where none were counted; [n_dims] and [n_dims][n_dims], the divisor is their number.
  [[nodiscard]] std::vector<double> mean(std::size_t head) const;
  [[nodiscard]] std::vector<double> covariance(std::size_t head) const;

  [[nodiscard]] const QueryImage& image() const { return all_; }
  // kDamaged for what no image() gives: of other heads, not finite, or of fewer queries than none. An image without any leaves
  // all at none.
  Status restore(const QueryImage& image);

 private:
  void add_head(std::size_t head, const Rows& rows, const float* q);

  Shape shape_;
  Position from_;
  QueryImage all_;
};

}  // namespace ebb
