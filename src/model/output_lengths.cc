#include "model/output_lengths.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "ggml.h"

#include "base/check.h"
#include "base/for_each_parallel.h"
#include "base/to_size.h"
#include "cache/frame_layout.h"
#include "model/attention_kernel.h"
#include "model/attention_work.h"
#include "model/model.h"

namespace ebb {
namespace {

// Rows of W_O read from the file at once: less than a megabyte of most models.
constexpr std::size_t kRowsRead = 64;

// Tokens that go through a matrix together, a row of the kernels' vectors.
constexpr std::size_t kLanes = 16;

// Rows [n_rows][n_dims] of one head, each padded with zeros, and the same by column.
class HeadRows {
 public:
  HeadRows(std::size_t n_dims, std::size_t stride)
      : n_dims_(n_dims),
        stride_(stride),
        rows_(kRowsRead * stride),
        columns_(n_dims * kRowsRead),
        products_(n_dims * stride) {}

  void read(const float* first, std::size_t n_rows, std::size_t n_in) {
    n_rows_ = n_rows;
    for (std::size_t r = 0; r < n_rows; ++r) {
      for (std::size_t i = 0; i < n_dims_; ++i) {
        rows_[r * stride_ + i] = columns_[i * kRowsRead + r] = first[r * n_in + i];
      }
    }
  }
  // gram[i][j] += the sum over rows of row[i] * row[j].
  void add_products(float* gram) {
    const MatrixView view{.data = rows_.data(),
                          .n_rows = static_cast<std::int32_t>(n_rows_),
                          .n_columns = static_cast<std::int32_t>(stride_),
                          .stride = static_cast<std::int32_t>(stride_)};
    const VectorsView columns{.data = columns_.data(),
                              .n = static_cast<std::int32_t>(n_dims_),
                              .stride = static_cast<std::int32_t>(kRowsRead)};
    current_kernels().multiply(view, columns, products_.data());
    for (std::size_t i = 0; i < products_.size(); ++i) gram[i] += products_[i];
  }

 private:
  std::size_t n_dims_;
  std::size_t stride_;
  std::size_t n_rows_ = 0;
  std::vector<float> rows_;
  std::vector<float> columns_;
  std::vector<float> products_;
};

// Rounding may leave a little less than nothing; weights that are no numbers make nothing longer.
double root(double square) { return std::isfinite(square) ? std::sqrt(std::max(0.0, square)) : 0.0; }

// Of products [kDims][n] and values [kDims][n]: what they add to each token's square, in the order of dimensions.
template <int kDims>
void add_products(const float* products, const float* values, std::span<double> squares) {
  const std::size_t n = squares.size();
  for (std::size_t t = 0; t < n; ++t) {
    double square = squares[t];
    for (std::size_t d = 0; d < kDims; ++d) square += double{products[d * n + t]} * double{values[d * n + t]};
    squares[t] = square;
  }
}

void to_floats(ggml_type type, std::span<const std::byte> bytes, std::span<float> out) {
  if (type == GGML_TYPE_F32) {
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return;
  }
  ggml_get_type_traits(type)->to_float(bytes.data(), out.data(), static_cast<std::int64_t>(out.size()));
}

}  // namespace

OutputLengths::OutputLengths(const Model& model)
    : n_dims_(model.hparams().head_dim_v),
      stride_((n_dims_ + 15) / 16 * 16),
      n_group_(to_size(model.hparams().n_heads / model.hparams().n_kv_heads)),
      n_heads_(to_size(model.hparams().n_heads)),
      grams_(to_size(model.hparams().n_layers) * n_heads_ * gram_floats()) {}

Result<std::unique_ptr<OutputLengths>> OutputLengths::make(const Model& model, std::int32_t n_threads) {
  std::unique_ptr<OutputLengths> lengths(new OutputLengths(model));
  std::vector<Status> done(to_size(model.hparams().n_layers));
  for_each_parallel(done.size(), n_threads, [&](std::size_t layer) { done[layer] = lengths->add_layer(model, layer); });
  for (const Status& status : done) EBB_RETURN_IF_ERROR(status);
  return lengths;
}

// The file's own rows: what the backend has may be repacked, or on a device.
Status OutputLengths::add_layer(const Model& model, std::size_t layer) {
  const TensorInfo* const info = model.file().find_tensor(model.weights().layers[layer].wo->name);
  EBB_CHECK(info != nullptr, "layer {} has an output matrix that its file does not have", layer);
  const std::size_t n_dims = to_size(n_dims_);
  const std::size_t n_in = n_heads_ * n_dims;
  const auto n_out = static_cast<std::size_t>(info->shape[1]);
  const std::size_t row_bytes = ggml_row_size(info->type, static_cast<std::int64_t>(n_in));
  std::vector<std::byte> bytes(kRowsRead * row_bytes);
  std::vector<float> rows(kRowsRead * n_in);
  HeadRows of_head(n_dims, to_size(stride_));
  for (std::size_t at = 0; at < n_out; at += kRowsRead) {
    const std::size_t n = std::min(kRowsRead, n_out - at);
    const auto piece = std::span(bytes).first(n * row_bytes);
    EBB_RETURN_IF_ERROR(model.file().mapping().read(info->file_offset + at * row_bytes, piece));
    to_floats(info->type, piece, std::span(rows).first(n * n_in));
    for (std::size_t head = 0; head < n_heads_; ++head) {
      of_head.read(rows.data() + head * n_dims, n, n_in);
      of_head.add_products(grams_.data() + (layer * n_heads_ + head) * gram_floats());
    }
  }
  return {};
}

MatrixView OutputLengths::gram(std::size_t head, std::size_t query_head) const {
  return {.data = grams_.data() + (head * n_group_ + query_head) * gram_floats(),
          .n_rows = n_dims_,
          .n_columns = stride_,
          .stride = stride_};
}

double OutputLengths::length(std::size_t head, std::span<const float> value) const {
  EBB_CHECK(value.size() == to_size(n_dims_), "a value of {} numbers, of heads of {}", value.size(), n_dims_);
  std::array<float, kMaxHeadDim> product;
  double lengths = 0.0;
  for (std::size_t g = 0; g < n_group_; ++g) {
    current_kernels().multiply(gram(head, g), {.data = value.data(), .n = 1, .stride = n_dims_}, product.data());
    double square = 0.0;
    for (std::size_t j = 0; j < value.size(); ++j) square += double{product[j]} * double{value[j]};
    lengths += root(square);
  }
  return lengths / static_cast<double>(n_group_);
}

// A Gram matrix is its own transpose to the last bit, since each of its numbers adds up the same products in the same order. So
// its rows are the vectors here, the values by dimension are the matrix, and tokens lie side by side.
void OutputLengths::add_squares(const MatrixView& gram, const MatrixView& values, std::span<double> squares) const {
  constexpr std::int32_t kDims = 4;
  std::vector<float> products(to_size(kDims * values.n_columns));
  std::int32_t j = 0;
  for (; j + kDims <= n_dims_; j += kDims) {
    const VectorsView rows{.data = gram.data + to_size(j) * to_size(gram.stride), .n = kDims, .stride = gram.stride};
    current_kernels().multiply(values, rows, products.data());
    add_products<kDims>(products.data(), values.data + to_size(j) * to_size(values.stride), squares);
  }
  for (; j < n_dims_; ++j) {
    const VectorsView row{.data = gram.data + to_size(j) * to_size(gram.stride), .n = 1, .stride = gram.stride};
    current_kernels().multiply(values, row, products.data());
    add_products<1>(products.data(), values.data + to_size(j) * to_size(values.stride), squares);
  }
}

std::vector<double> OutputLengths::lengths(std::size_t head, std::span<const float> values) const {
  const std::size_t n_dims = to_size(n_dims_);
  EBB_CHECK(values.size() % n_dims == 0, "values of {} numbers, of heads of {}", values.size(), n_dims);
  std::vector<double> lengths(values.size() / n_dims, 0.0);
  const std::size_t n_together = lengths.size() / kLanes * kLanes;
  std::vector<float> by_dim(n_dims * n_together);
  for (std::size_t t = 0; t < n_together; t += kLanes) {
    for (std::size_t d = 0; d < n_dims; ++d) {
      for (std::size_t i = t; i < t + kLanes; ++i) by_dim[d * n_together + i] = values[i * n_dims + d];
    }
  }
  const MatrixView matrix{.data = by_dim.data(),
                          .n_rows = n_dims_,
                          .n_columns = static_cast<std::int32_t>(n_together),
                          .stride = static_cast<std::int32_t>(n_together)};
  std::vector<double> squares(n_together);
  for (std::size_t g = 0; g < n_group_ && n_together > 0; ++g) {
    std::ranges::fill(squares, 0.0);
    add_squares(gram(head, g), matrix, squares);
    for (std::size_t i = 0; i < n_together; ++i) lengths[i] += root(squares[i]);
  }
  for (std::size_t i = 0; i < n_together; ++i) lengths[i] /= static_cast<double>(n_group_);
  for (std::size_t i = n_together; i < lengths.size(); ++i) {
    lengths[i] = length(head, values.subspan(i * n_dims, n_dims));
  }
  return lengths;
}

}  // namespace ebb
