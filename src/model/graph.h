// Graph: the decoder of a model as a ggml graph, for steps of one shape.
//
// It is built once and computed many times: what changes from step to step goes in through its input tensors and through
// the AttentionStep that its operations point at. It does not know sessions or residency, allocates nothing but its own
// metadata, and computes nothing: the runner does. Thread rule: as the runner's.
//
//   tokens -> embedding -> [ norm -> q, k, v -> rope -> write K/V, attend -> output matrix -> + ->
//                            norm -> gated feed-forward -> + ] x layers -> norm -> output matrix -> logits
//
// Rows whose logits nobody asked for leave the graph after the last layer's attention; where none are asked for, the
// graph ends once the last layer has written its K and V. With mass asked for, every layer attends all the same, and
// its rows' mass is summed right after. With queries asked for, those of every layer are computed, and added up before they are
// rotated.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/attention.h"
#include "model/composed_attention.h"
#include "model/composed_mass.h"
#include "model/model.h"
#include "model/product.h"
#include "model/square_choice.h"
#include "model/step_mass.h"

struct ggml_cgraph;
struct ggml_context;
struct ggml_tensor;

namespace ebb {

struct GraphShape {
  std::int32_t n_rows = 0;
  std::int32_t n_outputs = 0;
  // Sums attention mass (AttentionOp::mass or ComposedMass). A step with mass takes a graph with it, and the reverse.
  bool with_mass = false;
  // Adds up queries (SequenceRows::queries), likewise.
  bool with_queries = false;
  // Chooses what blocks of rows look at (SequenceRows::sight), likewise.
  bool with_squares = false;
  // ComposedPlan::n_parts
  std::int32_t n_parts = 1;

  friend bool operator==(const GraphShape&, const GraphShape&) = default;
};

// One layer's attention as our CPU operations read it; the address is the operations' user data.
struct AttentionOp {
  AttentionShape shape;
  LayerIndex layer;
  Team* team = nullptr;
  const AttentionStep* step = nullptr;
  AttentionScratch* scratch = nullptr;
  StepMass* mass = nullptr;
  SquareChoice* squares = nullptr;

  // A window's table is short: its rows look at all of it.
  [[nodiscard]] bool has_squares() const { return shape.window == 0 && squares->is_asked(); }
};

// How attention is computed: by our CPU operations, or composed of ggml's.
struct GraphAttention {
  // One per layer, at fixed addresses.
  std::span<AttentionOp> ops;
  Team& team;
  // Not null: composed for this plan, over these frames.
  const ComposedPlan* plan = nullptr;
  FrameMemory* memory = nullptr;
  ComposedOps composed_ops;
};

class Graph {
 public:
  // Model, operations and frames must outlive the graph; the plan is copied.
  Graph(const Model& model, const GraphAttention& attention, const GraphShape& shape);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  [[nodiscard]] const GraphShape& shape() const { return shape_; }
  [[nodiscard]] ggml_cgraph* handle() const { return graph_; }
  // Inputs: i32 [n_rows], i32 [n_rows], i32 [n_outputs] (null when there are none).
  [[nodiscard]] ggml_tensor* tokens() const { return tokens_; }
  [[nodiscard]] ggml_tensor* anchors() const { return anchors_; }
  [[nodiscard]] ggml_tensor* output_rows() const { return output_rows_; }
  // f32 [n_vocab, n_outputs]; null when there are none.
  [[nodiscard]] ggml_tensor* logits() const { return logits_; }
  // Null where our CPU operations attend.
  [[nodiscard]] ComposedAttention* composed() const { return composed_.get(); }
  // Null unless composed, with mass.
  [[nodiscard]] ComposedMass* composed_mass() const { return composed_mass_.get(); }
  // Of each layer f32 [head_dim_k, n_heads, n_rows], before they are rotated, to be read after the computation; none unless
  // composed, with queries.
  [[nodiscard]] std::span<ggml_tensor* const> queries() const { return queries_; }

 private:
  void build();
  ggml_tensor* build_layer(LayerIndex layer, ggml_tensor* x);
  ggml_tensor* build_attention(LayerIndex layer, ggml_tensor* x);
  ggml_tensor* build_queries(LayerIndex layer, ggml_tensor* x);
  void note_queries(LayerIndex layer, ggml_tensor* q);
  ggml_tensor* build_cpu_attention(LayerIndex layer, ggml_tensor* q, ggml_tensor* k, ggml_tensor* v);
  ggml_tensor* build_composed_attention(LayerIndex layer, ggml_tensor* q, ggml_tensor* k, ggml_tensor* v);
  ggml_tensor* build_feed_forward(const LayerWeights& weights, ggml_tensor* x);
  ggml_tensor* build_heads(ggml_tensor* x, ggml_tensor* matrix, ggml_tensor* bias, std::int32_t head_dim);
  ggml_tensor* multiply(ggml_tensor* matrix, ggml_tensor* rows);
  ggml_tensor* build_norm(ggml_tensor* x, ggml_tensor* weight);
  ggml_tensor* build_rope(LayerIndex layer, ggml_tensor* x);
  ggml_tensor* build_logits(ggml_tensor* x);

  const Model& model_;
  std::span<AttentionOp> ops_;
  std::unique_ptr<ProductNodes> products_;
  std::unique_ptr<ComposedAttention> composed_;
  std::unique_ptr<ComposedMass> composed_mass_;
  GraphShape shape_;
  ggml_context* context_ = nullptr;
  ggml_cgraph* graph_ = nullptr;
  ggml_tensor* tokens_ = nullptr;
  ggml_tensor* anchors_ = nullptr;
  ggml_tensor* output_rows_ = nullptr;
  ggml_tensor* logits_ = nullptr;
  std::vector<ggml_tensor*> queries_;
};

}  // namespace ebb
