// The longbench bench: a table in LongBench's shape. Rows are policies at equal frames, columns are tasks, a cell is a score.
//
// Each prompt is computed once, question included, with everything hot (bench/policy_forks.h); each row goes on from there with
// its tokens hot, and with no more while it replies. The first row never evicts: what the model can do at all, and what every
// other cell is held against, item by item. Columns are those that were asked for; none is picked afterwards.
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
#include "bench/longbench_tasks.h"
#include "bench/statistics.h"
#include "cache/frame_layout.h"
#include "engine/engine.h"

namespace ebb {

struct LongBenchOptions {
  std::filesystem::path model;
  std::int32_t n_threads = 0;
  RowType kv_type = RowType::kF16;
  // The grain of choosing.
  std::int32_t block_size = 16;
  // As flags name them; none: every one but `none`.
  std::vector<std::string> policies;
  // Tokens that stay hot.
  std::vector<std::int32_t> budgets = {256, 128};
  // What prompts come back from; it must hold one of them.
  ColdStoreOptions store = {.ram_bytes = std::size_t{1} << 30};
  // A file of LongBench's shape. max_tokens 0: as many as the model's context holds beside a chat template and a reply.
  std::optional<LongBenchFileOptions> file;
  // Without a file.
  RecallTaskOptions task = {.split = RecallSplit::kTest, .n_tasks = 12};
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

struct LongBenchTask {
  std::string name;
  LongBenchMetric metric = LongBenchMetric::kQaF1;
  std::int32_t n_questions = 0;
  std::int32_t n_truncated = 0;
  // Of each item's prompt.
  Spread n_tokens;
};

struct LongBenchRow {
  std::string policy;
  std::int32_t budget_tokens = 0;  // 0: never evicting
  // The most that was hot once the policy had chosen.
  std::int32_t most_hot_tokens = 0;
  // [task][item], 0 to 100.
  std::vector<std::vector<double>> scores;

  [[nodiscard]] double score(std::size_t task) const;
};

struct LongBenchReport {
  std::string model;
  LongBenchOptions options;
  std::vector<LongBenchTask> tasks;
  // The first never evicts.
  std::vector<LongBenchRow> rows;

  // Beside never evicting, in points.
  [[nodiscard]] PairedDifference difference(const LongBenchRow& row, std::size_t task) const;
};

// kInvalidArgument for what cannot be measured, kOutOfBudget for prompts that the model's context or the store does not hold.
Result<LongBenchReport> run_longbench(const LongBenchOptions& options);
[[nodiscard]] std::string longbench_text(const LongBenchReport& report);
Status write_longbench_json(const std::filesystem::path& path, const LongBenchReport& report);
Status write_longbench_html(const std::filesystem::path& path, const LongBenchReport& report);

}  // namespace ebb
