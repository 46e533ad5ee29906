// Hparams: the numbers that describe one model, read from its GGUF file and checked against each other.
//
// They mean what libllama 0.5.0 makes of the same keys, because it is the oracle of our tests. Values are final: a
// reader needs no defaults, no "0 means" beyond what is written here, and no knowledge of the architecture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace ebb {

class GgufFile;
struct Architecture;

// How pairs of dimensions that rotate together lie in a head.
enum class RopeKind : std::uint8_t {
  kNormal,  // (0, 1), (2, 3), ...
  kNeoX,    // (0, n_rot/2), (1, n_rot/2 + 1), ...
};

enum class RopeScaling : std::uint8_t { kNone, kLinear, kYarn };

struct Hparams {
  std::string architecture;
  std::string name;  // general.name; may be empty

  std::int32_t n_vocab = 0;
  std::int32_t n_embd = 0;
  std::int32_t n_layers = 0;
  std::int32_t n_heads = 0;
  std::int32_t n_kv_heads = 0;  // divides n_heads
  std::int32_t head_dim_k = 0;  // of Q and K
  std::int32_t head_dim_v = 0;
  std::int32_t n_ff = 0;
  std::int32_t n_rot = 0;  // rotated dimensions of a head: all of them, in these architectures
  std::int32_t n_ctx_train = 0;

  float norm_eps = 0.0F;

  // As ggml_rope_ext takes them. Llama 3's own scaling has no number here: it is LayerWeights::rope_factors.
  RopeScaling rope_scaling = RopeScaling::kNone;
  float rope_freq_base = 10000.0F;
  float rope_freq_scale = 1.0F;  // 1 / factor
  std::int32_t rope_orig_ctx = 0;
  float yarn_ext_factor = 0.0F;   // 1 with YaRN, else 0
  float yarn_attn_factor = 1.0F;  // ggml multiplies its own YaRN magnitude on top
  float yarn_beta_fast = 32.0F;
  float yarn_beta_slow = 1.0F;

  // A query at position p of a sliding layer sees (p - sliding_window, p]; 0 when no layer slides.
  std::int32_t sliding_window = 0;
  std::vector<bool> layer_is_sliding;  // [n_layers]
  float rope_freq_base_sliding = 10000.0F;
  float rope_freq_scale_sliding = 1.0F;

  float attention_scale = 0.0F;      // multiplies Q K^T
  float embedding_scale = 1.0F;      // multiplies the embedding of a token
  float final_logit_softcap = 0.0F;  // c > 0: logits = c * tanh(logits / c)

  [[nodiscard]] bool is_sliding(LayerIndex layer) const { return layer_is_sliding[layer.index()]; }
  [[nodiscard]] float freq_base(LayerIndex layer) const {
    return is_sliding(layer) ? rope_freq_base_sliding : rope_freq_base;
  }
  [[nodiscard]] float freq_scale(LayerIndex layer) const {
    return is_sliding(layer) ? rope_freq_scale_sliding : rope_freq_scale;
  }
  // Window of this layer, 0 for none.
  [[nodiscard]] std::int32_t window(LayerIndex layer) const { return is_sliding(layer) ? sliding_window : 0; }

  friend bool operator==(const Hparams&, const Hparams&) = default;
};

// kDamaged when a key is missing, of a wrong type or absurd; kUnsupported when a key asks for something that ebb would
// have to compute differently (experts, soft caps, ...).
Result<Hparams> read_hparams(const GgufFile& file, const Architecture& architecture);

}  // namespace ebb
