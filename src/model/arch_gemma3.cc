// Gemma 3, text only: most layers see a sliding window and rotate faster.
#include <algorithm>
#include <cmath>
#include <vector>

#include "model/architecture.h"
#include "model/key_reader.h"

namespace ebb {

namespace {

// Every sixth layer sees everything, unless the file has an array of flags, or another period (0: all slide).
Status read_pattern(const KeyReader& keys, Hparams& h) {
  constexpr std::int32_t kPeriod = 6;
  const std::string suffix = "attention.sliding_window_pattern";
  if (keys.file().is_array(keys.key(suffix))) {
    EBB_ASSIGN_OR_RETURN(const std::optional<std::vector<std::int64_t>> flags, keys.file().find_ints(keys.key(suffix)));
    if (flags->size() != static_cast<std::size_t>(h.n_layers)) {
      return error(Code::kDamaged, "{}: key '{}' has {} values for {} layers; convert the model again",
                   keys.file().name(), keys.key(suffix), flags->size(), h.n_layers);
    }
    std::transform(flags->begin(), flags->end(), h.layer_is_sliding.begin(), [](std::int64_t f) { return f != 0; });
    return {};
  }
  EBB_ASSIGN_OR_RETURN(const std::optional<std::int32_t> given, keys.find_int(suffix, {0, 1 << 20}));
  const std::int32_t period = given.value_or(kPeriod);
  for (std::int32_t layer = 0; layer < h.n_layers; ++layer) {
    h.layer_is_sliding[static_cast<std::size_t>(layer)] = period == 0 || layer % period < period - 1;
  }
  return {};
}

Status read_own(const KeyReader& keys, Hparams& h) {
  h.embedding_scale = std::sqrt(static_cast<float>(h.n_embd));
  EBB_ASSIGN_OR_RETURN(const std::optional<float> softcap, keys.find_float("final_logit_softcapping", {0.0, 1e6}));
  h.final_logit_softcap = softcap.value_or(0.0F);

  // The 27B model divides by the width per head, which there is not the size of a head.
  constexpr std::int32_t kLayersOf27B = 62;
  if (h.n_layers == kLayersOf27B) h.attention_scale = 1.0F / std::sqrt(static_cast<float>(h.n_embd / h.n_heads));

  EBB_ASSIGN_OR_RETURN(const std::optional<std::int32_t> window,
                       keys.find_int("attention.sliding_window", {0, 1 << 30}));
  h.sliding_window = window.value_or(0);
  if (h.sliding_window == 0) return {};
  EBB_ASSIGN_OR_RETURN(const std::optional<float> base, keys.find_float("rope.freq_base_swa", {1.0, 1e12}));
  h.rope_freq_base_sliding = base.value_or(10000.0F);
  return read_pattern(keys, h);
}

}  // namespace

const Architecture& arch_gemma3() {
  static constexpr Architecture kGemma3{
      .name = "gemma3",
      .rope = RopeKind::kNeoX,
      .activation = Activation::kGelu,
      .qkv_bias = Presence::kOptional,
      .qk_norm = true,
      .post_norms = true,
      .final_softcap = true,
      .read_own = &read_own,
  };
  return kGemma3;
}

}  // namespace ebb
