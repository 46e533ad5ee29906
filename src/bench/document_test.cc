#include "bench/document.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace ebb {
namespace {

const std::filesystem::path kModel = std::filesystem::path(EBB_SOURCE_DIR) / "models/ebb-recall.gguf";

TEST(DocumentBench, asks_every_arm_the_same_and_recall_answers_what_a_policy_alone_does_not) {
  DocumentOptions options{.model = kModel,
                          .n_threads = 2,
                          .policies = {"streaming"},
                          .kinds = {RecallKind::kNeedle},
                          .places = {QuestionPlace::kLast, QuestionPlace::kNext},
                          .parts = {4}};
  options.task.n_tokens = 1200;
  options.task.n_tasks = 3;
  const Result<DocumentReport> report = run_document(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->cells.size(), 8U);
  double alone = 0.0;
  double recalled = 0.0;
  for (const DocumentCell& cell : report->cells) {
    EXPECT_EQ(cell.right.size(), 3U) << cell.arm;
    double n_right = 0.0;
    for (const double right : cell.right) n_right += right;
    if (cell.arm == "streaming") alone += n_right;
    if (cell.arm == "streaming, recall") recalled += n_right;
    EXPECT_EQ(cell.n_recalled > 0, cell.arm.ends_with("recall") || cell.arm.ends_with("oracle")) << cell.arm;
  }
  EXPECT_GT(recalled, alone);
  const std::string text = document_text(*report);
  EXPECT_THAT(text, testing::AllOf(testing::HasSubstr("never evicting"), testing::HasSubstr("streaming, oracle")));

  const std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("document-{}.json", getpid());
  ASSERT_TRUE(write_document_json(path, *report).ok());
  std::ifstream in(path);
  const nlohmann::json json = nlohmann::json::parse(in);
  EXPECT_EQ(json["cells"].size(), 8U);
  std::filesystem::remove(path);
  for (const nlohmann::json& cell : json["cells"]) EXPECT_EQ(cell.contains("beside_never_evicting"), cell["part"] != 1);
}

TEST(DocumentBench, refuses_what_leaves_nothing_to_ask_and_policies_that_there_are_not) {
  EXPECT_EQ(run_document({.model = kModel, .kinds = {}}).status().code(), Code::kInvalidArgument);
  EXPECT_FALSE(run_document({.model = kModel, .policies = {"nobody"}}).ok());
}

TEST(DocumentBench, names_of_places_lead_back) {
  for (const QuestionPlace place : {QuestionPlace::kLast, QuestionPlace::kFirst, QuestionPlace::kNext}) {
    EXPECT_EQ(find_question_place(name_of(place)), place);
  }
  EXPECT_FALSE(find_question_place("middle").has_value());
}

}  // namespace
}  // namespace ebb
