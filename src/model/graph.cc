#include "model/graph.h"

#include <array>
#include <new>

#include <ggml.h>

#include "device/backend.h"
#include "model/tail_queries.h"

namespace ebb {
namespace {

// Nodes of one layer with every optional part, and of what surrounds the layers. Too few: ggml stops while building.
constexpr std::size_t kNodesPerLayer = 60;
constexpr std::size_t kNodesAround = 32;

// Metadata of a tensor that is built and then only viewed takes room too.
constexpr std::size_t kTensorsPerNode = 2;

std::vector<AttentionShape> layer_shapes(std::span<const AttentionOp> ops) {
  std::vector<AttentionShape> shapes;
  for (const AttentionOp& op : ops) shapes.push_back(op.shape);
  return shapes;
}

// Bundles multiply the nodes of composed attention; what else a graph has does not depend on the step.
std::size_t max_nodes(const Model& model, const ComposedPlan* plan) {
  // ComposedAttention states its own bound per layer, and needs a context to be made: bounded here from the plan.
  constexpr std::size_t kNodesPerBundle = 56;
  const std::size_t per_layer = kNodesPerLayer + (plan == nullptr ? 0 : kNodesPerBundle * (plan->bundles.size() + 1));
  return per_layer * static_cast<std::size_t>(model.hparams().n_layers) + kNodesAround;
}

// Strides in floats of a tensor [head_dim, n_heads, n_rows].
std::size_t head_stride(const ggml_tensor* t) { return t->nb[1] / sizeof(float); }
std::size_t row_stride(const ggml_tensor* t) { return t->nb[2] / sizeof(float); }

// Each part, by the threads that share it. Nothing may be thrown through them (AttentionScratch::note_short).
void share(const AttentionOp& op, int ith, int nth, const auto& compute) {
  share_operation(*op.team, ith, nth, [&](std::int32_t part, std::int32_t n_parts) {
    try {
      compute(part, n_parts);
    } catch (const std::bad_alloc&) {
      op.scratch->note_short();
    }
  });
}

void run_write_kv(ggml_tensor* dst, int ith, int nth, void* user_data) {
  const auto& op = *static_cast<const AttentionOp*>(user_data);
  const ggml_tensor* k = dst->src[0];
  const ggml_tensor* v = dst->src[1];
  const AttentionTensors tensors = {.k = static_cast<const float*>(k->data),
                                    .k_row_stride = row_stride(k),
                                    .k_head_stride = head_stride(k),
                                    .v = static_cast<const float*>(v->data),
                                    .v_row_stride = row_stride(v),
                                    .v_head_stride = head_stride(v)};
  share(op, ith, nth, [&](std::int32_t part, std::int32_t n_parts) {
    write_kv(op.shape, *op.step, op.layer, tensors, *op.scratch, part, n_parts);
  });
}

void run_choose_squares(ggml_tensor* dst, int ith, int nth, void* user_data) {
  const auto& op = *static_cast<const AttentionOp*>(user_data);
  const ggml_tensor* q = dst->src[0];
  const AttentionTensors tensors = {
      .q = static_cast<const float*>(q->data), .q_row_stride = row_stride(q), .q_head_stride = head_stride(q)};
  share(op, ith, nth, [&](std::int32_t part, std::int32_t n_parts) {
    op.squares->choose(op.shape, *op.step, op.layer, tensors, *op.scratch, part, n_parts);
  });
}

void run_attend(ggml_tensor* dst, int ith, int nth, void* user_data) {
  const auto& op = *static_cast<const AttentionOp*>(user_data);
  const ggml_tensor* q = dst->src[0];
  const AttentionTensors tensors = {.q = static_cast<const float*>(q->data),
                                    .q_row_stride = row_stride(q),
                                    .q_head_stride = head_stride(q),
                                    .out = static_cast<float*>(dst->data),
                                    .out_row_stride = row_stride(dst),
                                    .out_head_stride = head_stride(dst),
                                    .mass = op.step->mass_stride > 0 ? op.mass->rows() : nullptr,
                                    .slices = op.mass->slices(*op.step),
                                    .last_layer = op.layer.value() == op.step->n_layers - 1,
                                    .squares = op.has_squares() ? op.squares : nullptr};
  share(op, ith, nth, [&](std::int32_t part, std::int32_t n_parts) {
    attend(op.shape, *op.step, op.layer, tensors, *op.scratch, part, n_parts);
  });
}

void run_add_queries(ggml_tensor* dst, int ith, int nth, void* user_data) {
  const auto& op = *static_cast<const AttentionOp*>(user_data);
  const ggml_tensor* q = dst->src[0];
  share(op, ith, nth, [&](std::int32_t part, std::int32_t n_parts) {
    for (const SequenceRows& rows : op.step->sequences) {
      if (!rows.asks_queries()) continue;
      give_queries(rows, op.layer,
                   {.q = static_cast<const float*>(q->data) + static_cast<std::size_t>(rows.row_begin) * row_stride(q),
                    .row_stride = row_stride(q),
                    .head_stride = head_stride(q),
                    .first = rows.first,
                    .n_rows = rows.n_rows},
                   part, n_parts);
    }
  });
}

void run_sum_mass(ggml_tensor*, int ith, int nth, void* user_data) {
  const auto& op = *static_cast<const AttentionOp*>(user_data);
  share(op, ith, nth,
        [&](std::int32_t part, std::int32_t n_parts) { op.mass->add_rows(*op.step, op.layer, part, n_parts); });
}

}  // namespace

Graph::Graph(const Model& model, const GraphAttention& attention, const GraphShape& shape)
    : model_(model), ops_(attention.ops), shape_(shape) {
  EBB_CHECK(shape.n_rows > 0 && shape.n_outputs >= 0 && shape.n_outputs <= shape.n_rows, "{} rows, {} outputs",
            shape.n_rows, shape.n_outputs);
  const std::size_t n_nodes = max_nodes(model, attention.plan);
  const std::size_t bytes =
      ggml_tensor_overhead() * kTensorsPerNode * n_nodes + ggml_graph_overhead_custom(n_nodes, false);
  context_ = ggml_init({.mem_size = bytes, .mem_buffer = nullptr, .no_alloc = true});
  EBB_CHECK(context_ != nullptr, "no memory for the metadata of a graph");
  graph_ = ggml_new_graph_custom(context_, n_nodes, false);
  products_ = std::make_unique<ProductNodes>(context_, model.weights().packed(), attention.team);
  if (attention.plan != nullptr) {
    composed_ = std::make_unique<ComposedAttention>(
        context_, *attention.memory,
        ComposedAttention::Setup{
            .plan = *attention.plan, .layers = layer_shapes(attention.ops), .ops = attention.composed_ops});
    if (shape.with_mass) composed_mass_ = std::make_unique<ComposedMass>(context_, *attention.plan);
  }
  build();
}

Graph::~Graph() { ggml_free(context_); }

void Graph::build() {
  tokens_ = ggml_new_tensor_1d(context_, GGML_TYPE_I32, shape_.n_rows);
  anchors_ = ggml_new_tensor_1d(context_, GGML_TYPE_I32, shape_.n_rows);
  ggml_set_input(tokens_);
  ggml_set_input(anchors_);
  if (shape_.n_outputs > 0) {
    output_rows_ = ggml_new_tensor_1d(context_, GGML_TYPE_I32, shape_.n_outputs);
    ggml_set_input(output_rows_);
  }
  ggml_tensor* x = ggml_get_rows(context_, model_.weights().token_embd, tokens_);
  if (model_.hparams().embedding_scale != 1.0F) x = ggml_scale(context_, x, model_.hparams().embedding_scale);
  for (std::int32_t layer = 0; layer < model_.hparams().n_layers && x != nullptr; ++layer) {
    x = build_layer(LayerIndex(layer), x);
  }
  if (x != nullptr) {
    logits_ = build_logits(x);
    ggml_set_output(logits_);
    ggml_build_forward_expand(graph_, logits_);
  }
}

// [n_embd, n_rows] -> the same, or [n_embd, n_outputs] after the last layer, or null when nobody asks for outputs.
ggml_tensor* Graph::build_layer(LayerIndex layer, ggml_tensor* x) {
  const LayerWeights& weights = model_.weights().layers[layer.index()];
  const bool is_last = layer.value() == model_.hparams().n_layers - 1;
  ggml_tensor* attention = build_attention(layer, build_norm(x, weights.attn_norm));
  if (is_last && shape_.n_outputs == 0) return nullptr;
  if (is_last && shape_.n_outputs < shape_.n_rows) {
    attention = ggml_get_rows(context_, attention, output_rows_);
    x = ggml_get_rows(context_, x, output_rows_);
  }
  ggml_tensor* y = multiply(weights.wo, attention);
  if (weights.bo != nullptr) y = ggml_add(context_, y, weights.bo);
  if (weights.post_attn_norm != nullptr) y = build_norm(y, weights.post_attn_norm);
  x = ggml_add(context_, y, x);

  y = build_feed_forward(weights, build_norm(x, weights.ffn_norm));
  if (weights.post_ffn_norm != nullptr) y = build_norm(y, weights.post_ffn_norm);
  return ggml_add(context_, y, x);
}

// [n_embd, n_rows] -> [n_heads * head_dim_v, n_rows], or null when only K and V of the last layer are wanted.
// What the graph must compute of it, whoever reads the result, is expanded here.
ggml_tensor* Graph::build_attention(LayerIndex layer, ggml_tensor* x) {
  const Hparams& hparams = model_.hparams();
  const LayerWeights& weights = model_.weights().layers[layer.index()];
  ggml_tensor* q = nullptr;
  const bool attends = layer.value() < hparams.n_layers - 1 || shape_.n_outputs > 0 || shape_.with_mass;
  if (attends || shape_.with_queries) q = build_queries(layer, x);
  if (shape_.with_queries) note_queries(layer, q);
  q = attends ? build_rope(layer, q) : nullptr;
  // Computed before K and V are written, so that its inputs' memory is free again by then.
  if (attends) ggml_build_forward_expand(graph_, q);
  ggml_tensor* k = build_heads(x, weights.wk, weights.bk, hparams.head_dim_k);
  if (weights.k_norm != nullptr) k = build_norm(k, weights.k_norm);
  k = build_rope(layer, k);
  ggml_tensor* v = build_heads(x, weights.wv, weights.bv, hparams.head_dim_v);
  return composed_ ? build_composed_attention(layer, q, k, v) : build_cpu_attention(layer, q, k, v);
}

ggml_tensor* Graph::build_queries(LayerIndex layer, ggml_tensor* x) {
  const LayerWeights& weights = model_.weights().layers[layer.index()];
  ggml_tensor* q = build_heads(x, weights.wq, weights.bq, model_.hparams().head_dim_k);
  return weights.q_norm == nullptr ? q : build_norm(q, weights.q_norm);
}

// On the CPU they are added up where they are computed. Elsewhere each layer's stay as they are until they are read.
void Graph::note_queries(LayerIndex layer, ggml_tensor* q) {
  if (!composed_) {
    ggml_build_forward_expand(graph_, ggml_custom_4d(context_, GGML_TYPE_F32, 1, 1, 1, 1, &q, 1, run_add_queries,
                                                     GGML_N_TASKS_MAX, &ops_[layer.index()]));
    return;
  }
  queries_.push_back(ggml_cont(context_, q));
  ggml_set_output(queries_.back());
  ggml_build_forward_expand(graph_, queries_.back());
}

ggml_tensor* Graph::build_cpu_attention(LayerIndex layer, ggml_tensor* q, ggml_tensor* k, ggml_tensor* v) {
  const Hparams& hparams = model_.hparams();
  AttentionOp* op = &ops_[layer.index()];
  std::array<ggml_tensor*, 2> rows = {k, v};
  // ggml orders nodes by their data: the written frames are none of its tensors, so one element stands for them.
  ggml_tensor* written =
      ggml_custom_4d(context_, GGML_TYPE_F32, 1, 1, 1, 1, rows.data(), 2, run_write_kv, GGML_N_TASKS_MAX, op);
  ggml_build_forward_expand(graph_, written);
  if (q == nullptr) return nullptr;

  std::array<ggml_tensor*, 2> queries = {q, written};
  if (shape_.with_squares && op->shape.window == 0) {
    queries[1] = ggml_custom_4d(context_, GGML_TYPE_F32, 1, 1, 1, 1, queries.data(), 2, run_choose_squares,
                                GGML_N_TASKS_MAX, op);
  }
  ggml_tensor* result = ggml_custom_4d(context_, GGML_TYPE_F32, hparams.head_dim_v, hparams.n_heads, shape_.n_rows, 1,
                                       queries.data(), 2, run_attend, GGML_N_TASKS_MAX, op);
  if (shape_.with_mass) {
    // Right behind it: the rows of the next layer go where these are.
    ggml_build_forward_expand(
        graph_, ggml_custom_4d(context_, GGML_TYPE_F32, 1, 1, 1, 1, &result, 1, run_sum_mass, GGML_N_TASKS_MAX, op));
  }
  return ggml_reshape_2d(context_, result, static_cast<std::int64_t>(hparams.head_dim_v) * hparams.n_heads,
                         shape_.n_rows);
}

ggml_tensor* Graph::build_composed_attention(LayerIndex layer, ggml_tensor* q, ggml_tensor* k, ggml_tensor* v) {
  const ComposedAttention::Written written = composed_->write(layer, k, v);
  ggml_build_forward_expand(graph_, written.k);
  ggml_build_forward_expand(graph_, written.v);
  if (q == nullptr) return nullptr;
  const ComposedAttention::Attended attended = composed_->attend(layer, q, shape_.with_mass);
  if (shape_.with_mass) {
    for (ggml_tensor* sums : composed_mass_->sum_rows(layer, attended.mass)) ggml_build_forward_expand(graph_, sums);
  }
  return attended.out;
}

// [n_embd, n_rows] -> [head_dim, n_heads, n_rows]
ggml_tensor* Graph::build_heads(ggml_tensor* x, ggml_tensor* matrix, ggml_tensor* bias, std::int32_t head_dim) {
  ggml_tensor* y = multiply(matrix, x);
  if (bias != nullptr) y = ggml_add(context_, y, bias);
  return ggml_reshape_3d(context_, y, head_dim, y->ne[0] / head_dim, shape_.n_rows);
}

ggml_tensor* Graph::multiply(ggml_tensor* matrix, ggml_tensor* rows) { return products_->multiply(matrix, rows); }

ggml_tensor* Graph::build_norm(ggml_tensor* x, ggml_tensor* weight) {
  return ggml_mul(context_, ggml_rms_norm(context_, x, model_.hparams().norm_eps), weight);
}

ggml_tensor* Graph::build_rope(LayerIndex layer, ggml_tensor* x) {
  const Hparams& h = model_.hparams();
  const int mode = model_.architecture().rope == RopeKind::kNeoX ? GGML_ROPE_TYPE_NEOX : GGML_ROPE_TYPE_NORMAL;
  return ggml_rope_ext(context_, x, anchors_, model_.weights().layers[layer.index()].rope_factors, h.n_rot, mode,
                       h.rope_orig_ctx, h.freq_base(layer), h.freq_scale(layer), h.yarn_ext_factor, h.yarn_attn_factor,
                       h.yarn_beta_fast, h.yarn_beta_slow);
}

ggml_tensor* Graph::build_feed_forward(const LayerWeights& weights, ggml_tensor* x) {
  ggml_tensor* up = multiply(weights.ffn_up, x);
  ggml_tensor* gate = multiply(weights.ffn_gate, x);
  ggml_tensor* gated = model_.architecture().activation == Activation::kSilu ? ggml_swiglu_split(context_, gate, up)
                                                                             : ggml_geglu_split(context_, gate, up);
  return multiply(weights.ffn_down, gated);
}

// [n_embd, n_outputs] -> [n_vocab, n_outputs]
ggml_tensor* Graph::build_logits(ggml_tensor* x) {
  ggml_tensor* logits = multiply(model_.weights().output, build_norm(x, model_.weights().output_norm));
  const float cap = model_.hparams().final_logit_softcap;
  if (cap == 0.0F) return logits;
  return ggml_scale(context_, ggml_tanh(context_, ggml_scale(context_, logits, 1.0F / cap)), cap);
}

}  // namespace ebb
