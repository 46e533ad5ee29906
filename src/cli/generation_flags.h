// The flags that say how tokens are chosen and when a reply ends, shared by all commands that generate text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/generation.h"

namespace CLI {
class App;
}

namespace ebb {

struct GenerationFlags {
  std::int32_t max_tokens = -1;
  std::vector<std::string> stop;
  std::int64_t seed = -1;
  std::vector<std::string> logit_bias;
  std::string grammar;
  std::string grammar_file;
  std::optional<std::int32_t> recall_blocks = std::nullopt;
  double recall_ms = kMostRecallMs;
  std::string selectors = "fused";
  // What is bound to flags directly.
  SamplingOptions sampling;
};

// `flags` must live as long as the app; what it holds now are the defaults.
void add_generation_flags(CLI::App& app, GenerationFlags& flags);

// Adds only --recall, --recall-ms and --selectors, whose defaults are what `flags` holds now.
void add_recall_flags(CLI::App& app, GenerationFlags& flags);

// Adds only the flags that choose among tokens and mean the same for every reply.
void add_sampling_flags(CLI::App& app, GenerationFlags& flags);

// Reads the grammar's file. kInvalidArgument names the flag.
Result<GenerationOptions> generation_options(const GenerationFlags& flags);

// "15043+1.5", "15043-2", "15043-inf": token id, sign, bias.
Result<LogitBias> parse_logit_bias(std::string_view text);

}  // namespace ebb
