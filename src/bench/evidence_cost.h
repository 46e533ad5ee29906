// The evidence bench: what it costs to note what policies look at, while nothing leaves, and how long they choose by it.
//
// Each policy has a session of its own over the same tokens, whose frames are shared, so that all read the same bytes. Each
// decoded token and each prompt is timed beside one of a session whose policy asks for nothing, in turn; a second one that
// asks for nothing shows how far the machine itself is off. Choices are not in that: there are none. They are timed by themselves, and
// nothing comes of them. A prompt's time has that of reading it again, where a policy asks for it. Thread rule: one run at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/machine.h"
#include "bench/statistics.h"
#include "cache/frame_layout.h"
#include "policy/policy.h"

namespace ebb {

struct EvidenceCostOptions {
  // A GGUF file; empty: the random one of 1B parameters in `quant`.
  std::filesystem::path model;
  std::string quant = "q4_k";
  std::filesystem::path cache_folder;
  // 0: one per physical core.
  std::int32_t n_threads = 0;
  RowType kv_type = RowType::kF16;
  std::int32_t block_size = 64;
  // As flags name them: the last query, what blocks got lately, every query, the last ones (mean and largest).
  std::vector<std::string> policies = {std::string(kDefaultPolicy), "tova", "scored", "h2o"};
  // Resident tokens, rounded up to whole blocks.
  std::vector<std::int32_t> depths = {2048, 8192};
  // Pairs of decoded tokens and of prompts, and the tokens of a prompt.
  std::int32_t n_decode = 96;
  std::int32_t n_prompts = 12;
  std::int32_t n_prompt = 64;
  std::int32_t n_choices = 12;
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

struct EvidenceCostArm {
  std::string policy;
  // Its time over that of the session that asks for nothing, pair by pair, less 1.
  MedianInterval decode;
  MedianInterval prompt;
  double decode_tokens_per_s = 0.0;
  double prompt_tokens_per_s = 0.0;
  // Of what was noted, in the image of a session at rest; what does not grow with the session is shared out among its tokens too.
  double note_bytes_per_token = 0.0;
  // Milliseconds of choosing one block's frames of all heads, from everything that is hot. What frames hold was read before.
  MedianInterval choice_ms;
};

struct EvidenceCostDepth {
  std::int32_t n_resident = 0;
  // The first asks for nothing, as what it is held against does.
  std::vector<EvidenceCostArm> arms;
};

struct EvidenceCostReport {
  Machine machine;
  std::string model;
  std::int32_t n_threads = 0;
  std::int32_t block_size = 0;
  std::int32_t n_decode = 0;
  std::int32_t n_prompts = 0;
  std::int32_t n_prompt = 0;
  std::int32_t n_choices = 0;
  RowType kv_type = RowType::kF16;
  double kv_bytes_per_token = 0.0;
  std::vector<EvidenceCostDepth> depths;
};

Result<EvidenceCostReport> run_evidence_cost(const EvidenceCostOptions& options);

[[nodiscard]] std::string evidence_cost_text(const EvidenceCostReport& report);
Status write_evidence_cost_json(const std::filesystem::path& path, const EvidenceCostReport& report);
Status write_evidence_cost_html(const std::filesystem::path& path, const EvidenceCostReport& report);

}  // namespace ebb
