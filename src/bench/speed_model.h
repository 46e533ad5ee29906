// The models that `ebb bench speed` and others measure when they are given none: random weights in the shapes of Llama 3.2 1B and 3B,
// and in a third of the former, in types of ggml and in the mixes of them that are published.
//
// The speed of a pass does not depend on the weights' values, so nobody needs to download a model to compare figures.
// Thread rule: pure functions, but for the file that is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/random_model.h"

namespace ebb {

// All have tied embeddings of 32768.
//   0.3b: 16 layers of 1024, 16 heads and 8 KV heads of 64, feed-forward of 4096: 0.29e9 parameters
//   1b:   16 layers of 2048, 32 heads and 8 KV heads of 64, feed-forward of 8192: 1.04e9
//   3b:   28 layers of 3072, 24 heads and 8 KV heads of 128, feed-forward of 8192: 2.92e9
struct SpeedModelKind {
  std::string quant = "q4_k";
  std::string shape = "1b";
};

// kInvalidArgument when `quant` is none of speed_quant_names(), or `shape` none of speed_shape_names().
Result<RandomModelSpec> speed_model_spec(const SpeedModelKind& kind);
// "f32, f16, ..., q8_0, ...; mixes as llama.cpp publishes them: q4_k_s, ..."
[[nodiscard]] std::string speed_quant_names();
// "0.3b, 1b, 3b"
[[nodiscard]] std::string speed_shape_names();

// $XDG_CACHE_HOME/ebb, ~/.cache/ebb, or ebb in the folder for temporary files.
[[nodiscard]] std::filesystem::path default_cache_folder();

// Where that model lies in the folder, whether it is there or not.
[[nodiscard]] std::filesystem::path speed_model_path(const std::filesystem::path& folder, const SpeedModelKind& kind);
// Writes it unless it is there; a file that is there is whole.
Status ensure_speed_model(const std::filesystem::path& path, const RandomModelSpec& spec);
// `given` where it is not empty and a GGUF file, else that model, written first if need be. `progress` is told before
// minutes go into writing.
Result<std::filesystem::path> given_or_speed_model(const std::filesystem::path& given,
                                                   const std::filesystem::path& folder, const SpeedModelKind& kind,
                                                   const std::function<void(std::string_view, double)>& progress);

// `given` where it is not empty and a GGUF file, else one of 0.3e9 random parameters (16 layers of 1024, 16 heads and 8 KV heads of 64,
// feed-forward of 4096, Q8_0) with the vocabulary and the template of that file, so that recorded texts have as many tokens as they
// have there; written first if need be.
Result<std::filesystem::path> given_or_agent_model(const std::filesystem::path& given,
                                                   const std::filesystem::path& folder,
                                                   const std::filesystem::path& vocabulary_of,
                                                   const std::function<void(std::string_view, double)>& progress);

}  // namespace ebb
