#include "bench/longbench.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace ebb {
namespace {

using ::testing::HasSubstr;

LongBenchOptions small_options() {
  return {.model = std::filesystem::path(EBB_SOURCE_DIR) / "models" / "ebb-recall.gguf",
          .n_threads = 1,
          .policies = {"streaming", "snapkv"},
          .task = {.split = RecallSplit::kTest, .n_tasks = 2, .n_tokens = 400}};
}

TEST(LongBench, rows_are_held_against_never_evicting_and_keep_their_budgets) {
  LongBenchOptions options = small_options();
  options.budgets = {1024, 64};
  const Result<LongBenchReport> report = run_longbench(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->tasks.size(), 5U);
  ASSERT_EQ(report->rows.size(), 1U + 2U * 2U);
  const LongBenchRow& never = report->rows[0];
  EXPECT_EQ(never.policy, "never evicting");
  EXPECT_GT(never.score(1), 50.0) << "the bundled model finds a needle in 400 tokens";
  for (const LongBenchRow& row : report->rows) {
    EXPECT_LE(row.most_hot_tokens, row.budget_tokens == 0 ? 1024 : row.budget_tokens) << row.policy;
    for (std::size_t t = 0; t < report->tasks.size(); ++t) {
      ASSERT_EQ(row.scores[t].size(), 2U);
      // Nothing leaves a context that fits, so its replies are those of never evicting.
      if (row.budget_tokens == 1024) {
        EXPECT_EQ(row.scores[t], never.scores[t]);
      }
      const PairedDifference difference = report->difference(row, t);
      EXPECT_LE(difference.low, difference.mean);
      EXPECT_LE(difference.mean, difference.high);
    }
  }
  EXPECT_LT(report->rows[3].score(4), never.score(4)) << "the last 64 tokens have not all of ten facts";

  EXPECT_THAT(longbench_text(*report), HasSubstr("never evicting"));
  const std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("ebb_longbench_{}", getpid());
  ASSERT_TRUE(write_longbench_json(path, *report).ok());
  const nlohmann::json json = nlohmann::json::parse(std::ifstream(path));
  EXPECT_EQ(json["rows"][0]["cells"][4]["scores"].size(), 2U);
  EXPECT_FALSE(json["rows"][0]["cells"][0].contains("beside_never_evicting"));
  EXPECT_TRUE(json["rows"][1]["cells"][0].contains("beside_never_evicting"));
  ASSERT_TRUE(write_longbench_html(path, *report).ok());
  std::filesystem::remove(path);
}

TEST(LongBench, a_file_of_its_shape_is_asked_as_a_whole_prompt) {
  LongBenchOptions options = small_options();
  options.budgets = {64};
  options.file = LongBenchFileOptions{
      .lines =
          R"({"dataset": "qasper", "input": "What is the code of the north gate?", "context": "The code of the north gate is 4711.", "answers": ["4711"]})",
      .prompts = R"({"qasper": "{context} {input}"})",
      .n_items = 1};
  const Result<LongBenchReport> report = run_longbench(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->tasks.size(), 1U);
  EXPECT_GT(report->rows[0].score(0), 0.0);
  EXPECT_EQ(report->tasks[0].n_truncated, 0);
}

TEST(LongBench, what_cannot_be_measured_is_refused) {
  const auto message = [](const auto& change) {
    LongBenchOptions options = small_options();
    change(options);
    const Result<LongBenchReport> report = run_longbench(options);
    return report.ok() ? "" : report.status().message();
  };
  EXPECT_THAT(message([](auto& of) { of.budgets = {48}; }), HasSubstr("a budget of 48 tokens; give 64 at least"));
  EXPECT_THAT(message([](auto& of) { of.budgets = {128, 128}; }), HasSubstr("each once"));
  EXPECT_THAT(message([](auto& of) { of.policies = {"none"}; }), HasSubstr("none lets nothing leave"));
  EXPECT_THAT(message([](auto& of) { of.policies = {"h2o", "h2o"}; }), HasSubstr("h2o is given twice"));
  EXPECT_THAT(message([](auto& of) { of.policies = {"snapkv:window=8"}; }), HasSubstr("a window of 32"));
  EXPECT_THAT(message([](auto& of) { of.store.ram_bytes = 1 << 17; }), HasSubstr("give it more RAM"));
}

}  // namespace
}  // namespace ebb
