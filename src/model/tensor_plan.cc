#include "model/tensor_plan.h"

#include <string_view>
#include <unordered_set>
#include <utility>

#include "ggml-cpu.h"

#include "gguf/gguf_header.h"
#include "model/hparams.h"

namespace ebb {

namespace {

// Adds the planned_tensors of one layer.
class LayerPlan {
 public:
  LayerPlan(std::vector<PlannedTensor>& plan, std::int32_t layer)
      : plan_(plan), prefix_("blk." + std::to_string(layer) + ".") {}

  void matrix(std::string_view name, ggml_tensor*& place, std::int64_t n_in, std::int64_t n_out) {
    plan_.push_back(
        {prefix_ + std::string(name) + ".weight", TensorUse::kMatrix, Presence::kRequired, n_in, n_out, {&place}});
  }
  void norm(std::string_view name, ggml_tensor*& place, std::int64_t n, bool exists = true) {
    if (exists) vector(name, ".weight", place, n, Presence::kRequired);
  }
  void bias(std::string_view name, ggml_tensor*& place, std::int64_t n, Presence presence) {
    if (presence != Presence::kAbsent) vector(name, ".bias", place, n, presence);
  }

 private:
  void vector(std::string_view name, std::string_view suffix, ggml_tensor*& place, std::int64_t n, Presence presence) {
    plan_.push_back({prefix_ + std::string(name) + std::string(suffix), TensorUse::kVector, presence, n, 1, {&place}});
  }

  std::vector<PlannedTensor>& plan_;
  std::string prefix_;
};

void plan_layer(LayerPlan plan, const Hparams& h, const Architecture& architecture, LayerWeights& w) {
  const std::int64_t n_q = std::int64_t{h.n_heads} * h.head_dim_k;
  const std::int64_t n_k = std::int64_t{h.n_kv_heads} * h.head_dim_k;
  const std::int64_t n_v = std::int64_t{h.n_kv_heads} * h.head_dim_v;
  const std::int64_t n_result = std::int64_t{h.n_heads} * h.head_dim_v;
  plan.norm("attn_norm", w.attn_norm, h.n_embd);
  plan.matrix("attn_q", w.wq, h.n_embd, n_q);
  plan.matrix("attn_k", w.wk, h.n_embd, n_k);
  plan.matrix("attn_v", w.wv, h.n_embd, n_v);
  plan.matrix("attn_output", w.wo, n_result, h.n_embd);
  plan.bias("attn_q", w.bq, n_q, architecture.qkv_bias);
  plan.bias("attn_k", w.bk, n_k, architecture.qkv_bias);
  plan.bias("attn_v", w.bv, n_v, architecture.qkv_bias);
  plan.bias("attn_output", w.bo, h.n_embd, architecture.output_bias);
  plan.norm("attn_q_norm", w.q_norm, h.head_dim_k, architecture.qk_norm);
  plan.norm("attn_k_norm", w.k_norm, h.head_dim_k, architecture.qk_norm);
  plan.norm("post_attention_norm", w.post_attn_norm, h.n_embd, architecture.post_norms);
  plan.norm("ffn_norm", w.ffn_norm, h.n_embd);
  plan.matrix("ffn_gate", w.ffn_gate, h.n_embd, h.n_ff);
  plan.matrix("ffn_up", w.ffn_up, h.n_embd, h.n_ff);
  plan.matrix("ffn_down", w.ffn_down, h.n_ff, h.n_embd);
  plan.norm("post_ffw_norm", w.post_ffn_norm, h.n_embd, architecture.post_norms);
}

Status check_tensor(const GgufFile& file, const PlannedTensor& planned) {
  const TensorInfo* tensor = file.find_tensor(planned.name);
  if (tensor == nullptr) {
    if (planned.presence == Presence::kOptional) return {};
    return error(Code::kDamaged, "{}: tensor '{}' is missing; convert the model again", file.name(), planned.name);
  }
  if (tensor->shape != std::array<std::int64_t, GGML_MAX_DIMS>{planned.n_in, planned.n_out, 1, 1}) {
    return error(Code::kDamaged, "{}: tensor '{}' is {} where the keys ask for {} x {}; convert the model again",
                 file.name(), planned.name, tensor->shape_text(), planned.n_in, planned.n_out);
  }
  const bool fits = planned.use == TensorUse::kVector ? tensor->type == GGML_TYPE_F32 : is_matrix_type(tensor->type);
  if (!fits) {
    return error(Code::kUnsupported, "{}: tensor '{}' has type {}, which cannot serve there; quantise the model again",
                 file.name(), planned.name, ggml_type_name(tensor->type));
  }
  return {};
}

}  // namespace

std::vector<PlannedTensor> plan_tensors(const Hparams& hparams, const Architecture& architecture,
                                        WeightTensors& weights) {
  const Hparams& h = hparams;
  weights.layers.resize(static_cast<std::size_t>(h.n_layers));
  std::vector<PlannedTensor> plan;
  plan.push_back(
      {"token_embd.weight", TensorUse::kLookup, Presence::kRequired, h.n_embd, h.n_vocab, {&weights.token_embd}});
  plan.push_back({"output_norm.weight", TensorUse::kVector, Presence::kRequired, h.n_embd, 1, {&weights.output_norm}});
  plan.push_back({"output.weight", TensorUse::kMatrix, Presence::kOptional, h.n_embd, h.n_vocab, {&weights.output}});
  if (architecture.rope_factors != Presence::kAbsent) {
    PlannedTensor factors{"rope_freqs.weight", TensorUse::kVector, architecture.rope_factors, h.n_rot / 2, 1, {}};
    for (LayerWeights& layer : weights.layers) factors.places.push_back(&layer.rope_factors);
    plan.push_back(std::move(factors));
  }
  for (std::int32_t layer = 0; layer < h.n_layers; ++layer) {
    plan_layer(LayerPlan(plan, layer), h, architecture, weights.layers[static_cast<std::size_t>(layer)]);
  }
  return plan;
}

Status check_tensors(const GgufFile& file, const std::vector<PlannedTensor>& plan, const Architecture& architecture) {
  std::unordered_set<std::string_view> known;
  for (const PlannedTensor& planned : plan) {
    EBB_RETURN_IF_ERROR(check_tensor(file, planned));
    known.insert(planned.name);
  }
  for (const TensorInfo& tensor : file.tensors()) {
    if (!known.contains(tensor.name)) {
      return error(Code::kUnsupported, "{}: tensor '{}' has no place in ebb's '{}' architecture; use another model",
                   file.name(), printable(tensor.name), architecture.name);
    }
  }
  return {};
}

bool is_matrix_type(ggml_type type) {
  if (type == GGML_TYPE_F32) return true;
  const bool readable = ggml_get_type_traits(type)->to_float != nullptr;
  const bool number = type == GGML_TYPE_F16 || type == GGML_TYPE_BF16 || ggml_is_quantized(type);
  return readable && number && ggml_get_type_traits_cpu(type)->vec_dot != nullptr;
}

}  // namespace ebb
