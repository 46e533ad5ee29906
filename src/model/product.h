// Product: a weight matrix times rows, as nodes of a ggml graph.
//
// Matrices of the types that people run are packed (matrix/packed_matrix.h), and their products are ours: rows are rounded to bytes once, for
// all matrices that they meet, and each output has one order of sums, whatever stands beside it. Other matrices are ggml's. It does not know
// models. Thread rule: PackedMatrices are immutable once filled; a ProductNodes belongs to one graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "base/team.h"
#include "matrix/packed_matrix.h"

struct ggml_context;
struct ggml_tensor;

namespace ebb {

// The kind in which products with rows of n_in weights of a ggml_type are computed here; none: they are ggml's, on this processor.
[[nodiscard]] std::optional<WeightKind> packed_kind(int ggml_type, std::int64_t n_in);

// The packed ones of a model's matrices, by the tensors that stand for them in graphs and have no memory of their own.
using PackedMatrices = std::map<const ggml_tensor*, PackedMatrix>;

// The products of one graph.
class ProductNodes {
 public:
  // All outlive it.
  ProductNodes(ggml_context* context, const PackedMatrices& packed, Team& team)
      : context_(context), packed_(packed), team_(team) {}

  // matrix [n_in, n_out], rows [n_in, n_rows] f32 -> [n_out, n_rows] f32
  [[nodiscard]] ggml_tensor* multiply(ggml_tensor* matrix, ggml_tensor* rows);
  [[nodiscard]] bool is_packed(const ggml_tensor* matrix) const { return packed_.contains(matrix); }

 private:
  // What an operation of the graph is given.
  struct Task {
    const PackedMatrix* matrix = nullptr;
    Team* team = nullptr;
    PanelQueue queue = {};
  };
  static void run(ggml_tensor* dst, int ith, int nth, void* task);
  ggml_tensor* round(ggml_tensor* rows);

  ggml_context* context_;
  const PackedMatrices& packed_;
  Team& team_;
  std::map<const ggml_tensor*, ggml_tensor*> rounded_;
  std::deque<Task> tasks_;
};

}  // namespace ebb
