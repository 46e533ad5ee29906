// Areas replay: recorded scores of one sequence, pass by pass, and what the areas scheme would have evicted.
//
// The text is a stranger's: whatever it holds, the answer is a report or a refusal that says where and why. No model is needed
// and none is known here. The format: docs/policy_replay.md. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/areas.h"
#include "policy/rotation.h"

namespace ebb {

// A recording of the largest size holds some hundred passes of a model of 30 layers at a thousand tokens each.
inline constexpr std::size_t kMostReplayBytes = std::size_t{64} << 20;

struct AreasReplayStep {
  std::optional<std::int32_t> n_scheduled;  // none: as many as the scores say
  std::optional<std::int32_t> n_processed;  // what the recording takes it to be, to be compared
  std::vector<std::vector<float>> scores;   // by layer
  std::vector<std::int32_t> skipped;
  std::vector<std::vector<float>> diversity;  // by layer; empty where it was not recorded
};

struct AreasReplay {
  AreasConfig config;
  AreasShape shape;
  std::int32_t n_prompt = 0;
  // Of the pool that usage is a share of; 0: what one such sequence needs at most.
  std::int32_t n_pool_blocks = 0;
  // Sizes the original's rotation table, where config.upstream asks for it.
  std::int32_t n_batched_tokens = 256;
  std::vector<AreasReplayStep> steps;
};

struct AreasReplayLayer {
  AreasEviction eviction;
  std::vector<BlockShift> shifts;  // to be done before the next pass, where rotation is on
};

struct AreasReplayRow {
  std::int32_t n_scheduled = 0;
  std::int32_t n_processed = 0;  // after the pass
  std::int32_t n_cached = 0;     // at the end of the pass, before anything left
  std::int32_t n_left = 0;       // in the cache, when it had
  double usage = 0.0;            // percent of the pool, when it was scheduled
  std::vector<AreasReplayLayer> layers;
};

struct AreasReplayReport {
  std::vector<AreasReplayRow> rows;
  std::int32_t n_evicted = 0;  // tokens
  std::int32_t n_most_cached = 0;
  std::int32_t max_after_eviction = 0;
  std::int32_t n_pool_blocks = 0;
  double last_usage = 0.0;
  double max_usage = 0.0;
  double average_usage = 0.0;
  std::vector<std::string> notes;
};

// kInvalidArgument names the field, and what it may be.
Result<AreasReplay> read_areas_replay(std::string_view text);
// Errors of the scheme name the step, counted from 1. kOutOfBudget where a step needs more blocks than the pool has.
Result<AreasReplayReport> run_areas_replay(const AreasReplay& replay);

// For people: one row for each step and layer in which something left or was rescued.
[[nodiscard]] std::string areas_replay_text(const AreasReplay& replay, const AreasReplayReport& report);
// All of it, indented, with a newline at its end.
[[nodiscard]] std::string areas_replay_json(const AreasReplayReport& report);

}  // namespace ebb
