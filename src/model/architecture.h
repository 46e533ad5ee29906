// Architecture: what differs between the decoders of one family, as a value.
//
// All of them are: embed; per layer (norm, attention, add, norm, gated feed-forward, add); norm; output matrix. The
// fields say which parts exist. One file per architecture (arch_NAME.cc) holds its value and the keys that only it has;
// nothing there builds graphs or touches tensors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/hparams.h"

namespace ebb {

class KeyReader;

enum class Activation : std::uint8_t {
  kSilu,
  kGelu,  // tanh approximation (ggml_gelu)
};

// Whether a kind of tensor may, must or must not be in the file.
enum class Presence : std::uint8_t { kAbsent, kOptional, kRequired };

struct Architecture {
  std::string_view name;  // general.architecture
  RopeKind rope = RopeKind::kNeoX;
  Activation activation = Activation::kSilu;  // of the feed-forward's gate
  Presence qkv_bias = Presence::kAbsent;
  Presence output_bias = Presence::kAbsent;   // of the attention's output matrix
  Presence rope_factors = Presence::kAbsent;  // rope_freqs.weight, divides the frequencies (Llama 3.1)
  bool qk_norm = false;                       // RMS norm over each head of Q and K, before the rotation
  bool post_norms = false;                    // RMS norms of the attention's and the feed-forward's results
  bool final_softcap = false;                 // may have final_logit_softcapping
  // Reads the keys that only this architecture has, after all common ones. May be null.
  Status (*read_own)(const KeyReader& keys, Hparams& hparams) = nullptr;
};

// Null when ebb has none of that name.
[[nodiscard]] const Architecture* find_architecture(std::string_view name);
// All of them, in the order to name them to people.
[[nodiscard]] std::span<const Architecture* const> all_architectures();
// "llama, qwen2, ..."
[[nodiscard]] std::string architecture_names();
// The architecture that the file names; kUnsupported lists what there is.
Result<const Architecture*> get_architecture(const GgufFile& file);

// One per arch_NAME.cc.
[[nodiscard]] const Architecture& arch_llama();
[[nodiscard]] const Architecture& arch_qwen2();
[[nodiscard]] const Architecture& arch_qwen3();
[[nodiscard]] const Architecture& arch_gemma3();

}  // namespace ebb
