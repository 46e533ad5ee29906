// The policies bench: what each eviction policy loses at the same number of frames, and what recall gives back.
//
// A context is computed once, and kept as an image: tokens, notes of what attention gave, records in the store. Each arm
// begins as a fork of it, whose blocks come back without a forward pass, and shrinks to its budget; so all arms chose from the
// same evidence. Then a question is computed and answered on top of the budget.
//
//   agnostic   the policy chooses before it has seen the question
//   aware      the question is computed with everything hot, and the policy chooses behind it
//   oracle     by the mass that the right answer, computed with everything hot, gives each block in each head
//   recall     blocks that share rare words with the question come back first, inside the budget
//
// Perplexity is of text behind a context, decoded under the budget, relative to everything hot. Thread rule: one run at a
// time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/policy_forks.h"
#include "bench/recall_tasks.h"
#include "bench/statistics.h"
#include "cache/frame_layout.h"

namespace ebb {

// What the others are held against, and the arms that are no policies.
inline constexpr std::string_view kBaseline = "streaming";
inline constexpr std::string_view kEverythingHot = "everything hot";
inline constexpr std::string_view kOracle = "oracle";

struct PoliciesOptions {
  std::filesystem::path model;
  std::int32_t n_threads = 0;
  RowType kv_type = RowType::kF16;
  // The grain of choosing.
  std::int32_t block_size = 16;
  // As flags name them; streaming is always measured, since the others are held against it. None: every one but `none`.
  std::vector<std::string> policies;
  // Parts of the context that stay hot: 4 is a quarter.
  std::vector<std::int32_t> parts = {16, 8, 4, 2};
  std::vector<RecallKind> kinds = {RecallKind::kNeedle, RecallKind::kMultiFact, RecallKind::kTenAtOnce};
  // Of all cases; kind and n_tasks are set by the bench.
  RecallTaskOptions task;
  // For each of the seeds, of each kind.
  std::int32_t n_tasks = 8;
  std::vector<std::int32_t> seeds = {1, 2, 3};
  ForkFloors floors;
  // Decoded behind each context for perplexity.
  std::int32_t n_text_tokens = 128;
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

// One kind of task, asked in one way, at one budget.
struct PoliciesCell {
  RecallKind kind = RecallKind::kNeedle;
  bool is_aware = false;
  bool recalls = false;
  std::int32_t part = 0;

  friend auto operator<=>(const PoliciesCell&, const PoliciesCell&) = default;
};

// Answers in the order of tasks and questions, the same for every arm of a kind.
struct PoliciesArm {
  std::string policy;  // or "oracle", "everything hot"
  PoliciesCell cell;
  std::vector<bool> right;
  // The most frames that a context had once the policy had chosen, and the most that it might have, as tokens.
  std::int32_t most_hot_tokens = 0;
  std::int32_t budget_tokens = 0;

  [[nodiscard]] double share() const;
};

struct PoliciesText {
  std::string policy;
  std::int32_t part = 0;  // 1: everything hot
  // Sum of -log p over the scored tokens of each context.
  std::vector<double> surprise;
  std::int32_t n_tokens = 0;  // of each
  std::vector<double> ms_per_token;

  [[nodiscard]] double perplexity() const;
};

struct PoliciesReport {
  std::string model;
  PoliciesOptions options;
  std::vector<std::string> policies;
  std::vector<PoliciesArm> arms;
  std::vector<PoliciesText> texts;

  // Null where that was not measured.
  [[nodiscard]] const PoliciesArm* find(std::string_view policy, const PoliciesCell& cell) const;
};

// What `a` answers better than `b`, in points, over questions in pairs.
[[nodiscard]] PairedDifference compare_answers(const std::vector<bool>& a, const std::vector<bool>& b);

// kOutOfBudget where the model's context does not hold a task; kInvalidArgument for an unknown policy.
Result<PoliciesReport> run_policies(const PoliciesOptions& options);
[[nodiscard]] std::string policies_text(const PoliciesReport& report);
Status write_policies_json(const std::filesystem::path& path, const PoliciesReport& report);
Status write_policies_html(const std::filesystem::path& path, const PoliciesReport& report);

}  // namespace ebb
