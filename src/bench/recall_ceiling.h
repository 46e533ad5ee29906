// The recall-tasks bench: how many recall tasks a model answers while nothing is evicted, its ceiling.
//
// What a policy loses is told against this, so tasks whose ceiling is low tell nothing. Each context is read once for each way of
// reading a prompt; its questions are asked as told, and once more paraphrased from where the context ends. Thread rule: one run at
// a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/recall_tasks.h"
#include "cache/frame_layout.h"

namespace ebb {

struct CeilingOptions {
  std::filesystem::path model;
  std::int32_t n_threads = 0;
  RowType kv_type = RowType::kF16;
  std::vector<RecallKind> kinds = {RecallKind::kNeedle, RecallKind::kMultiFact, RecallKind::kTenAtOnce,
                                   RecallKind::kKeyValue};
  std::vector<Haystack> haystacks = {Haystack::kSentences, Haystack::kChatter};
  std::vector<std::int32_t> lengths = {512, 1024, 2048};
  // Each context is read in each of these ways, in turn (policy/sparse_prompt.h).
  std::vector<std::string> sparse_prompts = {"none"};
  // Of all cases; its kind, haystack, n_tokens, paraphrased and near_twins are not looked at.
  RecallTaskOptions task;
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

struct CeilingMiss {
  std::string relation;
  std::string fact;
  std::string question;
  std::string wanted;
  std::string said;
};

// One kind of task in one haystack at one length, with or without near twins, read and asked in one way.
struct CeilingCase {
  RecallKind kind = RecallKind::kNeedle;
  Haystack haystack = Haystack::kSentences;
  std::int32_t n_tokens = 0;
  bool near_twins = false;
  std::string sparse_prompt;
  bool paraphrased = false;
  std::int32_t n_right = 0;
  std::int32_t n_asked = 0;
  std::vector<CeilingMiss> misses;

  [[nodiscard]] double share() const { return n_asked > 0 ? static_cast<double>(n_right) / n_asked : 0.0; }
};

// All cases together that were read in one way.
struct CeilingRelation {
  std::string name;
  std::string sparse_prompt;
  bool paraphrased = false;
  std::int32_t n_right = 0;
  std::int32_t n_asked = 0;
};

// Contexts of one length read in one way.
struct CeilingReading {
  std::string sparse_prompt;
  std::int32_t n_tokens = 0;
  std::vector<double> seconds;  // by context
};

struct CeilingReport {
  std::string model;
  CeilingOptions options;
  std::vector<CeilingCase> cases;
  std::vector<CeilingRelation> relations;  // by name, then by how they were asked and read
  std::vector<CeilingReading> readings;    // in the order in which they were first read
};

// Cases whose facts are too many for their length are left out. kOutOfBudget where the model's context does not hold a task.
Result<CeilingReport> run_ceiling(const CeilingOptions& options);
[[nodiscard]] std::string ceiling_text(const CeilingReport& report);
Status write_ceiling_json(const std::filesystem::path& path, const CeilingReport& report);
// The tasks themselves, as JSON text.
[[nodiscard]] std::string recall_tasks_json(const std::vector<RecallTask>& tasks);

}  // namespace ebb
