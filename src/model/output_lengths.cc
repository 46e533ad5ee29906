#include "model/output_lengths.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>

#include "ggml.h"

#include "base/check.h"
#include "base/to_size.h"
#include "cache/frame_layout.h"
#include "model/attention_kernel.h"
#include "model/attention_work.h"
#include "model/model.h"

namespace ebb {
namespace {

// Rows of W_O read from the file at once: less than a megabyte of most models.
constexpr std::size_t kRowsRead = 64;

// Rows [n_rows][n_dims] of one head, each padded with zeros, and the same by column.
class HeadRows {
 public:
  HeadRows(std::size_t n_dims, std::size_t stride)
      : n_dims_(n_dims), stride_(stride), rows_(kRowsRead * stride), columns_(n_dims * kRowsRead), product_(stride) {}

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
    for (std::size_t i = 0; i < n_dims_; ++i) {
      current_kernels().multiply(view, columns_.data() + i * kRowsRead, product_.data());
      for (std::size_t j = 0; j < n_dims_; ++j) gram[i * stride_ + j] += product_[j];
    }
  }

 private:
  std::size_t n_dims_;
  std::size_t stride_;
  std::size_t n_rows_ = 0;
  std::vector<float> rows_;
  std::vector<float> columns_;
  std::vector<float> product_;
};

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
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  Status first_error;
  const auto work = [&] {
    for (std::size_t layer = next++; layer < to_size(model.hparams().n_layers); layer = next++) {
      const Status status = lengths->add_layer(model, layer);
      if (status.ok()) continue;
      const std::lock_guard lock(mutex);
      if (first_error.ok()) first_error = status;
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::int32_t i = 1; i < n_threads; ++i) helpers.emplace_back(work);
    work();
  }
  EBB_RETURN_IF_ERROR(first_error);
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

double OutputLengths::length(std::size_t head, std::span<const float> value) const {
  EBB_CHECK(value.size() == to_size(n_dims_), "a value of {} numbers, of heads of {}", value.size(), n_dims_);
  std::array<float, kMaxHeadDim> product;
  const AttentionKernels& kernels = current_kernels();
  double lengths = 0.0;
  for (std::size_t g = 0; g < n_group_; ++g) {
    const MatrixView gram{.data = grams_.data() + (head * n_group_ + g) * gram_floats(),
                          .n_rows = n_dims_,
                          .n_columns = stride_,
                          .stride = stride_};
    kernels.multiply(gram, value.data(), product.data());
    double square = 0.0;
    for (std::size_t j = 0; j < value.size(); ++j) square += double{product[j]} * double{value[j]};
    // Rounding may leave a little less than nothing; weights that are no numbers make nothing longer.
    lengths += std::isfinite(square) ? std::sqrt(std::max(0.0, square)) : 0.0;
  }
  return lengths / static_cast<double>(n_group_);
}

}  // namespace ebb
