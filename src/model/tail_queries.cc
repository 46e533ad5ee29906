#include "model/tail_queries.h"

#include <algorithm>

#include "base/status.h"
#include "base/to_size.h"

namespace ebb {

TailQueries::TailQueries(const QueryMoments::Shape& shape, std::int32_t n_rows) : shape_(shape), n_most_(n_rows) {
  EBB_CHECK(shape.n_layers > 0 && shape.n_heads > 0 && shape.n_dims > 0 && n_rows > 0,
            "{} queries of {} layers with {} heads of {}", n_rows, shape.n_layers, shape.n_heads, shape.n_dims);
  queries_.resize(to_size(shape.n_layers) * to_size(shape.n_heads) * to_size(n_rows) * to_size(shape.n_dims));
}

std::size_t TailQueries::offset(std::size_t head, Position row) const {
  return (head * to_size(n_most_) + row.index() % to_size(n_most_)) * to_size(shape_.n_dims);
}

void TailQueries::add(LayerIndex layer, const QueryMoments::Rows& rows, std::int32_t ith, std::int32_t n_threads) {
  for (std::int32_t h = ith; h < shape_.n_heads; h += n_threads) {
    const std::size_t head = layer.index() * to_size(shape_.n_heads) + to_size(h);
    for (std::int32_t row = std::max(0, rows.n_rows - n_most_); row < rows.n_rows; ++row) {
      const float* const query = rows.q + to_size(row) * rows.row_stride + to_size(h) * rows.head_stride;
      std::copy_n(query, to_size(shape_.n_dims), queries_.data() + offset(head, rows.first + row));
    }
  }
}

void TailQueries::end_step(Position first, Position anchor, std::int32_t n_rows) {
  const bool follows = n_rows_ > 0 && first == end_ && anchor == anchor_end_;
  n_rows_ = std::min((follows ? n_rows_ : 0) + n_rows, n_most_);
  end_ = first + n_rows;
  anchor_end_ = anchor + n_rows;
}

std::span<const float> TailQueries::query(std::size_t head, Position row) const {
  return std::span(queries_).subspan(offset(head, row), to_size(shape_.n_dims));
}

void give_queries(const SequenceRows& to, LayerIndex layer, const QueryMoments::Rows& rows, std::int32_t ith,
                  std::int32_t n_threads) {
  if (to.queries != nullptr) to.queries->add(layer, rows, ith, n_threads);
  if (to.tail_queries != nullptr) to.tail_queries->add(layer, rows, ith, n_threads);
}

}  // namespace ebb
