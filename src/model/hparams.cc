#include "model/hparams.h"

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "gguf/gguf_file.h"
#include "gguf/gguf_header.h"
#include "model/architecture.h"
#include "model/key_reader.h"

namespace ebb {

namespace {

// Far above every known model, far below what overflows or costs memory by itself.
constexpr IntRange kLayers{1, 512};
constexpr IntRange kWidth{1, 1 << 20};
constexpr IntRange kHeads{1, 4096};
constexpr IntRange kHeadDim{2, 1024};
constexpr IntRange kContext{1, 1 << 30};
constexpr std::int64_t kMaxVocabulary = 1 << 24;

struct Refusal {
  std::string_view suffix;
  double neutral;  // beside 0
};

// Keys of other members of these families. Each changes what is computed, in a way that our graphs do not have.
constexpr std::array kRefusals{
    Refusal{"expert_count", 0},
    Refusal{"expert_used_count", 0},
    Refusal{"nextn_predict_layers", 0},
    Refusal{"use_parallel_residual", 0},
    Refusal{"swin_norm", 0},
    Refusal{"attn_logit_softcapping", 0},
    Refusal{"logit_scale", 1},
    Refusal{"residual_scale", 1},
    Refusal{"embedding_scale", 1},
    Refusal{"attention.scale", 0},
    Refusal{"attention.output_scale", 1},
    Refusal{"attention.value_scale", 1},
    Refusal{"attention.temperature_scale", 0},
    Refusal{"attention.max_alibi_bias", 0},
    Refusal{"attention.clamp_kqv", 0},
    Refusal{"rope.scaling.alpha", 0},
};

Status refuse_other_kinds(const GgufFile& file, const KeyReader& keys, const Architecture& architecture) {
  for (const Refusal& refusal : kRefusals) EBB_RETURN_IF_ERROR(keys.refuse(refusal.suffix, refusal.neutral));
  if (!architecture.final_softcap) EBB_RETURN_IF_ERROR(keys.refuse("final_logit_softcapping", 0));
  EBB_ASSIGN_OR_RETURN(const std::optional<bool> causal, file.find_bool(keys.key("attention.causal")));
  if (!causal.value_or(true)) {
    return error(Code::kUnsupported, "{}: its attention looks ahead (an embedding model); give a text generator",
                 file.name());
  }
  if (file.is_array(keys.key("rope.dimension_sections"))) {
    return error(Code::kUnsupported, "{}: it rotates by several positions per token; give a text-only model",
                 file.name());
  }
  EBB_ASSIGN_OR_RETURN(const std::optional<std::string> activation, file.find_string(keys.key("hidden_activation")));
  const std::string_view expected = architecture.activation == Activation::kGelu ? "gelu" : "silu";
  if (activation && !activation->starts_with(expected)) {
    return error(Code::kUnsupported, "{}: its activation is '{}', where '{}' models have {}; use another model",
                 file.name(), printable(*activation), architecture.name, expected);
  }
  return {};
}

Status read_heads(const GgufFile& file, const KeyReader& keys, Hparams& h) {
  EBB_ASSIGN_OR_RETURN(const std::optional<std::int32_t> n_heads,
                       keys.find_layer_int("attention.head_count", kHeads, h.n_layers));
  if (!n_heads) return keys.get_int("attention.head_count", kHeads).status();
  h.n_heads = *n_heads;
  EBB_ASSIGN_OR_RETURN(const std::optional<std::int32_t> n_kv_heads,
                       keys.find_layer_int("attention.head_count_kv", kHeads, h.n_layers));
  h.n_kv_heads = n_kv_heads.value_or(h.n_heads);
  if (h.n_heads % h.n_kv_heads != 0) {
    return error(Code::kDamaged, "{}: {} query heads cannot share {} KV heads; convert the model again", file.name(),
                 h.n_heads, h.n_kv_heads);
  }
  EBB_ASSIGN_OR_RETURN(const std::optional<std::int32_t> dim_k, keys.find_int("attention.key_length", kHeadDim));
  EBB_ASSIGN_OR_RETURN(const std::optional<std::int32_t> dim_v, keys.find_int("attention.value_length", kHeadDim));
  h.head_dim_k = dim_k.value_or(h.n_embd / h.n_heads);
  h.head_dim_v = dim_v.value_or(h.n_embd / h.n_heads);
  EBB_ASSIGN_OR_RETURN(const std::optional<std::int32_t> n_rot, keys.find_int("rope.dimension_count", kHeadDim));
  h.n_rot = n_rot.value_or(h.head_dim_k);
  if (h.head_dim_k < kHeadDim.min || h.head_dim_k > kHeadDim.max || h.head_dim_k % 2 != 0) {
    return error(Code::kDamaged, "{}: heads of {} dimensions (an even number, {} to {}, expected); convert it again",
                 file.name(), h.head_dim_k, kHeadDim.min, kHeadDim.max);
  }
  if (h.head_dim_v != h.head_dim_k || h.n_rot != h.head_dim_k) {
    return error(Code::kUnsupported,
                 "{}: keys of {}, values of {} and {} rotated dimensions differ, which ebb does not support; "
                 "use another model",
                 file.name(), h.head_dim_k, h.head_dim_v, h.n_rot);
  }
  return {};
}

Status read_sizes(const GgufFile& file, const KeyReader& keys, Hparams& h) {
  EBB_ASSIGN_OR_RETURN(h.n_layers, keys.get_int("block_count", kLayers));
  EBB_ASSIGN_OR_RETURN(h.n_embd, keys.get_int("embedding_length", kWidth));
  EBB_ASSIGN_OR_RETURN(h.n_ctx_train, keys.get_int("context_length", kContext));
  EBB_ASSIGN_OR_RETURN(const std::optional<std::int32_t> n_ff,
                       keys.find_layer_int("feed_forward_length", kWidth, h.n_layers));
  if (!n_ff) return keys.get_int("feed_forward_length", kWidth).status();
  h.n_ff = *n_ff;
  EBB_ASSIGN_OR_RETURN(h.norm_eps, keys.get_float("attention.layer_norm_rms_epsilon", {0.0, 0.1}));
  h.layer_is_sliding.assign(static_cast<std::size_t>(h.n_layers), false);
  return read_heads(file, keys, h);
}

Status read_vocabulary_size(const GgufFile& file, Hparams& h) {
  const TensorInfo* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr) {
    return error(Code::kDamaged, "{}: tensor 'token_embd.weight' is missing; give a whole model", file.name());
  }
  if (embedding->shape[1] > kMaxVocabulary) {
    return error(Code::kDamaged, "{}: a vocabulary of {} tokens (at most {}); convert the model again", file.name(),
                 embedding->shape[1], kMaxVocabulary);
  }
  h.n_vocab = static_cast<std::int32_t>(embedding->shape[1]);
  const std::optional<std::size_t> n_tokens = file.find_array_length("tokenizer.ggml.tokens");
  if (n_tokens && *n_tokens != static_cast<std::size_t>(h.n_vocab)) {
    return error(Code::kDamaged, "{}: {} tokens in the vocabulary, but {} embeddings; convert the model again",
                 file.name(), *n_tokens, h.n_vocab);
  }
  return {};
}

// The magnitude that libllama hands to ggml_rope_ext. ggml multiplies by 1 + 0.1 ln(factor) itself whenever the
// extrapolation mix is on, so that is divided out first; what remains is 1 for factors above 1.
float yarn_attn_factor(float freq_scale) {
  const float factor = 1.0F / freq_scale;
  const float wanted = factor <= 1.0F ? 1.0F : 0.1F * std::log(factor) + 1.0F;
  return wanted * (1.0F / (1.0F + 0.1F * std::log(factor)));
}

Result<RopeScaling> read_scaling_kind(const GgufFile& file, const KeyReader& keys) {
  EBB_ASSIGN_OR_RETURN(const std::optional<std::string> kind, file.find_string(keys.key("rope.scaling.type")));
  if (!kind || *kind == "linear") return RopeScaling::kLinear;
  if (*kind == "none") return RopeScaling::kNone;
  if (*kind == "yarn") return RopeScaling::kYarn;
  return error(Code::kUnsupported, "{}: rope scaling '{}' is not supported (none, linear, yarn are); use another model",
               file.name(), printable(*kind));
}

// The yarn_* keys are not read: for these architectures libllama uses its defaults whatever they say.
Status read_rope(const GgufFile& file, const KeyReader& keys, Hparams& h) {
  EBB_ASSIGN_OR_RETURN(const std::optional<float> base, keys.find_float("rope.freq_base", {1.0, 1e12}));
  h.rope_freq_base = base.value_or(10000.0F);
  EBB_ASSIGN_OR_RETURN(h.rope_scaling, read_scaling_kind(file, keys));

  constexpr FloatRange kFactors{0.0, 1e6};
  EBB_ASSIGN_OR_RETURN(std::optional<float> factor, keys.find_float("rope.scaling.factor", kFactors));
  if (!factor) {
    EBB_ASSIGN_OR_RETURN(factor, keys.find_float("rope.scale_linear", kFactors));  // its name in old files
  }
  if (factor && *factor > 0.0F && *factor < 0.01F) {
    return error(Code::kDamaged, "{}: a rope scaling factor of {}; convert the model again", file.name(), *factor);
  }
  h.rope_freq_scale = factor.value_or(0.0F) == 0.0F ? 1.0F : 1.0F / *factor;
  if (h.rope_scaling == RopeScaling::kNone) h.rope_freq_scale = 1.0F;
  if (h.rope_scaling == RopeScaling::kLinear && h.rope_freq_scale == 1.0F) h.rope_scaling = RopeScaling::kNone;

  EBB_ASSIGN_OR_RETURN(const std::optional<std::int32_t> orig_ctx,
                       keys.find_int("rope.scaling.original_context_length", {0, kContext.max}));
  h.rope_orig_ctx = orig_ctx.value_or(0) == 0 ? h.n_ctx_train : *orig_ctx;
  EBB_ASSIGN_OR_RETURN(const std::optional<float> attn_factor, keys.find_float("rope.scaling.attn_factor", {0.0, 1e3}));
  if (h.rope_scaling == RopeScaling::kYarn) {
    h.yarn_ext_factor = 1.0F;
    h.yarn_attn_factor = yarn_attn_factor(h.rope_freq_scale);
  }
  h.yarn_attn_factor *= attn_factor.value_or(1.0F);
  return {};
}

}  // namespace

Result<Hparams> read_hparams(const GgufFile& file, const Architecture& architecture) {
  const KeyReader keys(file, architecture.name);
  Hparams h;
  h.architecture = architecture.name;
  EBB_ASSIGN_OR_RETURN(std::optional<std::string> name, file.find_string("general.name"));
  h.name = std::move(name).value_or("");
  EBB_RETURN_IF_ERROR(refuse_other_kinds(file, keys, architecture));
  EBB_RETURN_IF_ERROR(read_sizes(file, keys, h));
  EBB_RETURN_IF_ERROR(read_vocabulary_size(file, h));
  EBB_RETURN_IF_ERROR(read_rope(file, keys, h));
  h.attention_scale = 1.0F / std::sqrt(static_cast<float>(h.head_dim_k));
  if (architecture.read_own != nullptr) EBB_RETURN_IF_ERROR(architecture.read_own(keys, h));
  return h;
}

}  // namespace ebb
