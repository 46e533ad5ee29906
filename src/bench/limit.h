// The limit bench: how far a KV budget carries, with eviction and without: the meaning of OpenVINO GenAI's limit_checker.
//
//   gen_length       one prompt; asked for 2, 3, 5, ... 2^k + 1 tokens, each time from its beginning
//   gen_throughput   1, 2, 4, ... prompts at once until the pool is full, then between the last two numbers by halving
//
// An arm is a policy. `none` is eviction off: a sequence may fill the pool, and ends when it has. With any other a sequence keeps
// session_tokens hot. A length ends an arm when it takes too long, or when a generation ended for want of room. A number of
// prompts is too many when less than one block of the pool was free in any step.
//
// Thread rule: one run at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/recall_tasks.h"
#include "cache/frame_layout.h"
#include "policy/policy.h"

namespace ebb {

enum class LimitMode : std::uint8_t { kGenLength, kGenThroughput };
// "gen_length"; and back.
[[nodiscard]] std::string_view name_of(LimitMode mode);
[[nodiscard]] std::optional<LimitMode> find_limit_mode(std::string_view name);

struct LimitOptions {
  std::filesystem::path model;
  LimitMode mode = LimitMode::kGenLength;
  std::int32_t n_threads = 0;
  RowType kv_type = RowType::kF16;
  std::int32_t block_size = 32;
  // As flags name them.
  std::vector<std::string> policies = {"none", std::string(kDefaultPolicy)};
  // Tokens that may be hot, of all sequences together.
  std::int32_t pool_tokens = 4096;
  // Of one sequence, where something evicts.
  std::int32_t session_tokens = 672;
  // Of one round; all rounds of gen_length take three times as long at most, if time grows with length.
  double timeout_s = 60.0;
  // Generated for each prompt of gen_throughput.
  std::int32_t max_tokens = 128;
  // Texts, taken as they stand; gen_length takes the first. Empty: contexts of recall tasks, of prompt_tokens each.
  std::vector<std::string> prompts;
  std::int32_t prompt_tokens = 1024;
  RecallLanguage language = RecallLanguage::kBundled;
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

// Prompts of JSON lines, each with a text "prompt".
Result<std::vector<std::string>> read_limit_prompts(std::string_view lines);

enum class LimitEnd : std::uint8_t { kTime, kExhausted, kOutOfPrompts };

struct LimitRound {
  // Tokens after the first, or prompts.
  std::int32_t n_asked = 0;
  std::int32_t n_generated = 0;  // tokens, of all prompts
  // Of the pool's frames, in each step, 0 to 1: mean and most of all steps.
  double mean_usage = 0.0;
  double most_usage = 0.0;
  std::size_t resident_bytes = 0;  // of the process, when the round was over
  double seconds = 0.0;
  bool is_full = false;
  bool is_late = false;

  [[nodiscard]] double tokens_per_s() const { return seconds > 0.0 ? n_generated / seconds : 0.0; }
};

struct LimitArm {
  std::string policy;
  std::vector<LimitRound> rounds;
  LimitEnd end = LimitEnd::kTime;
  // The longest text, in tokens, or the most prompts that fitted at once.
  std::int32_t most = 0;
};

struct LimitReport {
  std::string model;
  LimitOptions options;
  std::int32_t n_prompt_tokens = 0;  // the longest prompt's
  std::vector<LimitArm> arms;
};

// kInvalidArgument for what cannot be measured: an unknown policy, no room for one sequence, more than the trained context.
Result<LimitReport> run_limit(const LimitOptions& options);
// "Cache size exhausted"
[[nodiscard]] std::string limit_end_text(LimitEnd end);
[[nodiscard]] std::string limit_text(const LimitReport& report);
// A row for each round; the first columns are limit_checker's.
Status write_limit_csv(const std::filesystem::path& path, const LimitReport& report);
Status write_limit_json(const std::filesystem::path& path, const LimitReport& report);
Status write_limit_html(const std::filesystem::path& path, const LimitReport& report);

}  // namespace ebb
