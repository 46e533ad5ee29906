#include "bench/recall_ceiling.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "model/random_model.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

// A model that knows nothing: the bench's bookkeeping, not its answers.
TEST(RecallCeiling, every_case_asks_as_told_and_paraphrased) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const std::filesystem::path path = folder / fmt::format("ebb_ceiling_{}.gguf", getpid());
  ASSERT_TRUE(write_random_model({.n_ctx_train = 4096}, path).ok());
  const Result<CeilingReport> report = run_ceiling({.model = path,
                                                    .n_threads = 1,
                                                    .kinds = {RecallKind::kNeedle, RecallKind::kTenAtOnce},
                                                    .haystacks = {Haystack::kSentences},
                                                    .lengths = {1500},
                                                    .sparse_prompts = {"none", "xattention:threshold=0.5"},
                                                    .task = {.n_tasks = 2}});
  std::filesystem::remove(path);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->cases.size(), 2U * 2U * 2U * 2U);
  std::int32_t n_asked = 0;
  for (const CeilingCase& c : report->cases) {
    EXPECT_EQ(c.n_asked, c.kind == RecallKind::kNeedle ? 2 : 20);
    EXPECT_EQ(c.n_right + std::ssize(c.misses), c.n_asked);
    n_asked += c.n_asked;
  }
  for (const CeilingRelation& relation : report->relations) n_asked -= relation.n_asked;
  EXPECT_EQ(n_asked, 0);
  ASSERT_EQ(report->readings.size(), 2U);
  for (const CeilingReading& reading : report->readings) EXPECT_EQ(reading.seconds.size(), 2U * 2U * 2U);
  EXPECT_THAT(ceiling_text(*report), HasSubstr("ten_at_once  sentences  yes    xattention:threshold=0.5"));

  const std::filesystem::path json_path = folder / fmt::format("ebb_ceiling_{}.json", getpid());
  ASSERT_TRUE(write_ceiling_json(json_path, *report).ok());
  const nlohmann::json json = nlohmann::json::parse(std::ifstream(json_path));
  std::filesystem::remove(json_path);
  EXPECT_EQ(json["cases"].size(), 16U);
  EXPECT_EQ(json["cases"][0]["kind"], "needle");
}

TEST(RecallCeiling, nothing_to_measure_is_refused) {
  EXPECT_EQ(run_ceiling({.sparse_prompts = {"streaming"}}).status().code(), Code::kNotFound);
  EXPECT_EQ(run_ceiling({.sparse_prompts = {"none", "none"}}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(run_ceiling({.kinds = {}}).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ebb
