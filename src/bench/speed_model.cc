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

struct Quant {
  std::string_view name;
  ggml_type type;
};

constexpr std::array kQuants{
    Quant{"f32", GGML_TYPE_F32},   Quant{"f16", GGML_TYPE_F16},   Quant{"bf16", GGML_TYPE_BF16},
    Quant{"q4_0", GGML_TYPE_Q4_0}, Quant{"q4_1", GGML_TYPE_Q4_1}, Quant{"q5_0", GGML_TYPE_Q5_0},
    Quant{"q5_1", GGML_TYPE_Q5_1}, Quant{"q8_0", GGML_TYPE_Q8_0}, Quant{"q2_k", GGML_TYPE_Q2_K},
    Quant{"q3_k", GGML_TYPE_Q3_K}, Quant{"q4_k", GGML_TYPE_Q4_K}, Quant{"q5_k", GGML_TYPE_Q5_K},
    Quant{"q6_k", GGML_TYPE_Q6_K},
};

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
  std::string names;
  for (const Quant& quant : kQuants) names += (names.empty() ? "" : ", ") + std::string(quant.name);
  return names;
}

Result<RandomModelSpec> speed_model_spec(std::string_view quant) {
  const auto* const found =
      std::find_if(kQuants.begin(), kQuants.end(), [&](const Quant& q) { return q.name == quant; });
  if (found == kQuants.end()) {
    return error(Code::kInvalidArgument, "no quantisation '{}' here; there are {}", quant, speed_quant_names());
  }
  RandomModelSpec spec;
  spec.architecture = "llama";
  spec.n_layers = 16;
  spec.n_embd = 2048;
  spec.n_heads = 32;
  spec.n_kv_heads = 8;
  spec.head_dim = 64;
  spec.n_ff = 8192;
  spec.n_vocab = 32768;
  spec.n_ctx_train = 131072;
  spec.rope_freq_base = 500000.0F;
  spec.llama3_factors = true;
  spec.tied = true;
  spec.weight_type = found->type;
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

std::filesystem::path speed_model_path(const std::filesystem::path& folder, std::string_view quant) {
  return folder / fmt::format("speed-1b-{}-v{}.gguf", quant, kSpeedModelVersion);
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
                                                   const std::filesystem::path& folder, std::string_view quant,
                                                   const std::function<void(std::string_view, double)>& progress) {
  if (!given.empty()) return checked(given);
  EBB_ASSIGN_OR_RETURN(const RandomModelSpec spec, speed_model_spec(quant));
  return written(spec, speed_model_path(folder, quant), progress);
}

Result<std::filesystem::path> given_or_agent_model(const std::filesystem::path& given,
                                                   const std::filesystem::path& folder,
                                                   const std::filesystem::path& vocabulary_of,
                                                   const std::function<void(std::string_view, double)>& progress) {
  if (!given.empty()) return checked(given);
  EBB_ASSIGN_OR_RETURN(const auto vocabulary, Vocabulary::load(vocabulary_of));
  RandomModelSpec spec;
  spec.n_layers = 16;
  spec.n_embd = 1024;
  spec.n_heads = 16;
  spec.n_kv_heads = 8;
  spec.head_dim = 64;
  spec.n_ff = 4096;
  spec.n_vocab = vocabulary->n_tokens();
  spec.n_ctx_train = 131072;
  spec.rope_freq_base = 500000.0F;
  spec.tied = true;
  spec.weight_type = GGML_TYPE_Q8_0;
  spec.vocabulary_of = vocabulary_of.string();
  return written(spec, folder / fmt::format("agent-0.3b-v{}-{}.gguf", kSpeedModelVersion, spec.n_vocab), progress);
}

}  // namespace ebb
