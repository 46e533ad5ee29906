// OutputLengths: how long a head's value is once the layer's output matrix has multiplied it, |v W_O|.
//
//   |v W|^2 = v (W W^T) v^T        W: the rows of W_O that are of one query head, [head_dim_v, n_embd]
//
// The Gram matrices W W^T are computed once, from the file's own weights, whatever layout the backend has them in; a length then
// costs head_dim_v^2 products for each query head instead of head_dim_v * n_embd. They take 4 * head_dim_v^2 bytes for each
// query head of each layer: 8 MB of a model of 16 layers with 32 heads of 64. Making them costs head_dim_v^2 * n_embd products
// for each query head, spread over threads: for four such layers 33 ms of one processor (frame_digest_benchmark.cc). So they
// are made for those who ask only.
//
// Biases, norms behind the matrix (gemma3) and what other heads add are not looked at: it is the length of what this value alone
// would add to its token. Thread rule: immutable after make().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"

namespace ebb {

class Model;
struct MatrixView;

class OutputLengths {
 public:
  // kIo where the file cannot be read.
  static Result<std::unique_ptr<OutputLengths>> make(const Model& model, std::int32_t n_threads);

  // The mean over the query heads of KV head `head`, which is layer * n_kv_heads + KV head. `value` is [head_dim_v].
  [[nodiscard]] double length(std::size_t head, std::span<const float> value) const;
  // Of several values, [n][head_dim_v]: the same bits, in less time, since they go through the matrices together.
  [[nodiscard]] std::vector<double> lengths(std::size_t head, std::span<const float> values) const;
  [[nodiscard]] std::size_t bytes() const { return grams_.size() * sizeof(float); }

 private:
  explicit OutputLengths(const Model& model);
  [[nodiscard]] std::size_t gram_floats() const {
    return static_cast<std::size_t>(n_dims_) * static_cast<std::size_t>(stride_);
  }
  [[nodiscard]] MatrixView gram(std::size_t head, std::size_t query_head) const;
  void add_squares(const MatrixView& gram, const MatrixView& values, std::span<double> squares) const;
  Status add_layer(const Model& model, std::size_t layer);

  std::int32_t n_dims_;       // head_dim_v
  std::int32_t stride_;       // of a matrix's rows: n_dims_ rounded up to 16
  std::size_t n_group_;       // query heads of a KV head
  std::size_t n_heads_;       // query heads of a layer
  std::vector<float> grams_;  // [layer][query head][n_dims][stride]
};

}  // namespace ebb
