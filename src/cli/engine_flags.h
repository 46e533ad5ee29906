// The flags that say what to run and on what, shared by all commands that generate text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "policy/policy.h"

namespace CLI {
class App;
}

namespace ebb {

class InterruptListener;

// As CLI11 checks a value: empty for a policy with its parameters, else what is wrong.
[[nodiscard]] std::string check_policy(const std::string& spec);

struct EngineFlags {
  std::string model;
  std::string device = "cpu";
  std::int32_t n_threads = 0;
  bool no_repack = false;
  std::int32_t kv_budget = 0;
  std::int32_t kv_prompt_budget = 0;
  std::string kv_budgets;
  std::vector<double> kv_layer_shares;
  std::string kv_type = "f16";
  std::int32_t block_size = 0;
  std::int32_t chunk = 512;
  // Of ebb serve alone, where replies are written while prompts are read (EngineOptions::most_pause_ms).
  int max_pause_ms = 0;
  std::string eviction{kDefaultPolicy};
  std::int32_t sink_tokens = 4;
  std::int32_t recent_tokens = 64;
  std::int32_t protected_tokens = 0;
  double high_watermark = 1.0;
  double low_watermark = 1.0;
  std::string remains = "restore";
  std::string recall_place = "original";
  std::int32_t renewed_tokens = 0;
  std::string removal = "sparse";
  std::string sparse_prompt = "none";
  bool no_rebase = false;
  std::string store = "ram=1G";
  std::string digests = "256M";
  std::string embedding_model;
};

// `flags` must live as long as the app; what it holds now are the defaults.
void add_engine_flags(CLI::App& app, EngineFlags& flags);

// For CLI11's check(): what is wrong with a sparse prompt, or nothing.
[[nodiscard]] std::string check_sparse_prompt(const std::string& text);

// Opens it with a progress bar; Ctrl-C stops loading, and later the engine's computations.
Result<std::unique_ptr<Engine>> open_engine(const EngineFlags& flags, InterruptListener& interrupt);

}  // namespace ebb
