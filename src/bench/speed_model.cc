#include "bench/speed_model.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "gguf/gguf_file.h"
#include "text/vocabulary.h"

namespace ebb {
namespace {

// Part of the file's name: whoever changes the shape or the writer raises it, or old files would be measured as new.
constexpr int kSpeedModelVersion = 1;

// Which matrices of a mix have another type than most: what llama.cpp's own quantisation gives them.
enum class Mix : std::uint8_t { kNone, kSmall, kMedium };

struct Quant {
  std::string_view name;
  ggml_type type;
  Mix mix = Mix::kNone;
};

constexpr std::array kQuants{
    Quant{"f32", GGML_TYPE_F32},
    Quant{"f16", GGML_TYPE_F16},
    Quant{"bf16", GGML_TYPE_BF16},
    Quant{"q4_0", GGML_TYPE_Q4_0},
    Quant{"q4_1", GGML_TYPE_Q4_1},
    Quant{"q5_0", GGML_TYPE_Q5_0},
    Quant{"q5_1", GGML_TYPE_Q5_1},
    Quant{"q8_0", GGML_TYPE_Q8_0},
    Quant{"q2_k", GGML_TYPE_Q2_K},
    Quant{"q3_k", GGML_TYPE_Q3_K},
    Quant{"q4_k", GGML_TYPE_Q4_K},
    Quant{"q5_k", GGML_TYPE_Q5_K},
    Quant{"q6_k", GGML_TYPE_Q6_K},
    Quant{"iq4_nl", GGML_TYPE_IQ4_NL},
    Quant{"iq4_xs", GGML_TYPE_IQ4_XS},
    Quant{"q4_k_s", GGML_TYPE_Q4_K, Mix::kSmall},
    Quant{"q4_k_m", GGML_TYPE_Q4_K, Mix::kMedium},
    Quant{"q5_k_s", GGML_TYPE_Q5_K, Mix::kSmall},
    Quant{"q5_k_m", GGML_TYPE_Q5_K, Mix::kMedium},
};

struct Shape {
  std::string_view name;
  std::int32_t n_layers;
  std::int32_t n_embd;
  std::int32_t n_heads;
  std::int32_t n_kv_heads;
  std::int32_t head_dim;
  std::int32_t n_ff;
};

constexpr std::array kShapes{
    Shape{"0.3b", 16, 1024, 16, 8, 64, 4096},
    Shape{"1b", 16, 2048, 32, 8, 64, 8192},
    Shape{"3b", 28, 3072, 24, 8, 128, 8192},
};

template <class Entries>
const auto* find_named(const Entries& entries, std::string_view name) {
  const auto* const found = std::ranges::find_if(entries, [name](const auto& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : found;
}

// The first and the last eighth of the layers, and every third between them.
bool has_more_bits(std::int32_t layer, std::int32_t n_layers) {
  return layer < n_layers / 8 || layer >= 7 * n_layers / 8 || (layer - n_layers / 8) % 3 == 2;
}

// Of llama.cpp's llama_model_quantize(), for the architecture llama: tied embeddings are the output matrix, which has 6 bits in any
// mix; of Q4_K_S the first four value matrices and the first eighth of ffn_down have 5; of the medium ones value matrices and ffn_down of
// some layers have 6.
void set_mix(const Quant& quant, RandomModelSpec& spec) {
  if (quant.mix == Mix::kNone) return;
  spec.tensor_types.push_back({"token_embd.weight", GGML_TYPE_Q6_K});
  for (std::int32_t layer = 0; layer < spec.n_layers; ++layer) {
    const auto set = [&](const char* tensor, ggml_type type) {
      spec.tensor_types.push_back({fmt::format("blk.{}.{}.weight", layer, tensor), type});
    };
    if (quant.mix == Mix::kMedium && has_more_bits(layer, spec.n_layers)) {
      set("attn_v", GGML_TYPE_Q6_K);
      set("ffn_down", GGML_TYPE_Q6_K);
    }
    if (quant.mix != Mix::kSmall || quant.type != GGML_TYPE_Q4_K) continue;
    if (layer < 4) set("attn_v", GGML_TYPE_Q5_K);
    if (layer < spec.n_layers / 8) set("ffn_down", GGML_TYPE_Q5_K);
  }
}

void set_shape(const Shape& shape, RandomModelSpec& spec) {
  spec.architecture = "llama";
  spec.n_layers = shape.n_layers;
  spec.n_embd = shape.n_embd;
  spec.n_heads = shape.n_heads;
  spec.n_kv_heads = shape.n_kv_heads;
  spec.head_dim = shape.head_dim;
  spec.n_ff = shape.n_ff;
  spec.n_ctx_train = 131072;
  spec.rope_freq_base = 500000.0F;
  spec.tied = true;
}

// A file that cannot be read is told of before minutes go into anything else.
Result<std::filesystem::path> checked(const std::filesystem::path& given) {
  EBB_RETURN_IF_ERROR(GgufFile::open(given).status());
  return given;
}

Result<std::filesystem::path> written(const RandomModelSpec& spec, const std::filesystem::path& path,
                                      const std::function<void(std::string_view, double)>& progress) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) progress(fmt::format("writing {} (once)", path.string()), 0.0);
  EBB_RETURN_IF_ERROR(ensure_speed_model(path, spec));
  return path;
}

}  // namespace

std::string speed_quant_names() {
  std::string types;
  std::string mixes;
  for (const Quant& quant : kQuants) {
    std::string& names = quant.mix == Mix::kNone ? types : mixes;
    names += (names.empty() ? "" : ", ") + std::string(quant.name);
  }
  return types + "; mixes as llama.cpp makes them: " + mixes;
}

std::string speed_shape_names() {
  std::string names;
  for (const Shape& shape : kShapes) names += (names.empty() ? "" : ", ") + std::string(shape.name);
  return names;
}

Result<RandomModelSpec> speed_model_spec(const SpeedModelKind& kind) {
  const Quant* const quant = find_named(kQuants, kind.quant);
  if (quant == nullptr) {
    return error(Code::kInvalidArgument, "no quantisation '{}' here; there are {}", kind.quant, speed_quant_names());
  }
  const Shape* const shape = find_named(kShapes, kind.shape);
  if (shape == nullptr) {
    return error(Code::kInvalidArgument, "no shape '{}' here; there are {}", kind.shape, speed_shape_names());
  }
  RandomModelSpec spec;
  set_shape(*shape, spec);
  spec.n_vocab = 32768;
  spec.llama3_factors = true;
  spec.weight_type = quant->type;
  set_mix(*quant, spec);
  return spec;
}

std::filesystem::path default_cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return std::filesystem::path(cache) / "ebb";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return std::filesystem::path(home) / ".cache" / "ebb";
  }
  std::error_code failed;
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(failed);
  return (failed ? std::filesystem::path("/tmp") : temporary) / "ebb";
}

std::filesystem::path speed_model_path(const std::filesystem::path& folder, const SpeedModelKind& kind) {
  return folder / fmt::format("speed-{}-{}-v{}.gguf", kind.shape, kind.quant, kSpeedModelVersion);
}

Status ensure_speed_model(const std::filesystem::path& path, const RandomModelSpec& spec) {
  std::error_code failed;
  if (std::filesystem::exists(path, failed)) return {};
  std::filesystem::create_directories(path.parent_path(), failed);
  if (failed) {
    return error(Code::kIo, "{}: cannot be created ({}); choose another folder with --cache-dir",
                 path.parent_path().string(), failed.message());
  }
  // Renamed when whole, so that neither a stop in mid-write nor a second bench leaves a torn model for the next run.
  std::filesystem::path partial = path;
  partial += fmt::format(".{}.partial", getpid());
  EBB_RETURN_IF_ERROR(write_random_model(spec, partial));
  std::filesystem::rename(partial, path, failed);
  if (failed) return error(Code::kIo, "{}: cannot be written ({})", path.string(), failed.message());
  return {};
}

Result<std::filesystem::path> given_or_speed_model(const std::filesystem::path& given,
                                                   const std::filesystem::path& folder, const SpeedModelKind& kind,
                                                   const std::function<void(std::string_view, double)>& progress) {
  if (!given.empty()) return checked(given);
  EBB_ASSIGN_OR_RETURN(const RandomModelSpec spec, speed_model_spec(kind));
  return written(spec, speed_model_path(folder, kind), progress);
}

Result<std::filesystem::path> given_or_agent_model(const std::filesystem::path& given,
                                                   const std::filesystem::path& folder,
                                                   const std::filesystem::path& vocabulary_of,
                                                   const std::function<void(std::string_view, double)>& progress) {
  if (!given.empty()) return checked(given);
  EBB_ASSIGN_OR_RETURN(const auto vocabulary, Vocabulary::load(vocabulary_of));
  RandomModelSpec spec;
  set_shape(kShapes.front(), spec);
  spec.n_vocab = vocabulary->n_tokens();
  spec.weight_type = GGML_TYPE_Q8_0;
  spec.vocabulary_of = vocabulary_of.string();
  return written(spec, folder / fmt::format("agent-0.3b-v{}-{}.gguf", kSpeedModelVersion, spec.n_vocab), progress);
}

}  // namespace ebb
