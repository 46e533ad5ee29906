#include "bench/document.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "bench/statistics.h"

namespace ebb::document_test {
namespace {

const std::filesystem::path kModel = std::filesystem::path(EBB_SOURCE_DIR) / "models/ebb-recall.gguf";

TEST(DocumentBench, asks_every_arm_the_same_and_recall_answers_what_a_policy_alone_does_not) {
  DocumentOptions options{.model = kModel,
                          .n_threads = 2,
                          .arms = {.policies = {"streaming"}, .arms = {"alone", "recall", "oracle"}},
                          .kinds = {"needle"},
                          .places = {QuestionPlace::kLast, QuestionPlace::kNext},
                          .parts = {4},
                          .lengths = {1200}};
  options.cases.task.n_tasks = 3;
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
    ASSERT_EQ(cell.found.size(), 3U) << cell.arm;
    if (cell.arm == "never evicting" || cell.arm == "streaming, oracle") {
      EXPECT_THAT(cell.found, testing::Each(1.0)) << cell.arm;
    }
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
  for (const nlohmann::json& cell : json["cells"]) {
    EXPECT_EQ(cell.contains("beside_never_evicting"), cell["part"] != 1);
    EXPECT_EQ(cell.contains("beside_oracle"), cell["part"] != 1 && cell["arm"] != "streaming, oracle");
  }
}

// Streaming alone and with recall, or what else `arms` says, of one kind asked in one place.
Result<DocumentReport> run_small(const std::string& kind, QuestionPlace place, std::vector<std::string> arms,
                                 std::int32_t n_tokens, std::int32_t n_tasks) {
  DocumentOptions options{.model = kModel,
                          .n_threads = 2,
                          .arms = {.policies = {"streaming"}, .arms = std::move(arms)},
                          .kinds = {kind},
                          .places = {place},
                          .budgets = {384},
                          .lengths = {n_tokens}};
  options.cases.task.n_tasks = n_tasks;
  return run_document(options);
}

// Probe after probe in one session: the request is computed once, and each probe is counted by its place.
TEST(DocumentBench, questions_in_a_row_share_their_session) {
  const Result<DocumentReport> report = run_small("multifact", QuestionPlace::kLast, {"recall"}, 1200, 1);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->cells.size(), 2U);
  for (const DocumentCell& cell : report->cells) {
    EXPECT_THAT(cell.groups, testing::ElementsAre("probe 1", "probe 2", "probe 3", "probe 4", "probe 5"));
    // Only the first holds the document.
    EXPECT_LT(cell.ms[4], cell.ms[0]) << cell.arm;
  }
  EXPECT_EQ(report->cells[1].hot.name(), "384");
  EXPECT_THAT(document_text(*report), testing::HasSubstr("probe 5"));
}

// What is asked stands in no message of the user's.
TEST(DocumentBench, in_a_tool_loop_recall_finds_what_the_tool_names) {
  const Result<DocumentReport> report = run_small("needle", QuestionPlace::kTool, {"alone", "recall"}, 1600, 4);
  ASSERT_TRUE(report.ok()) << report.status().message();
  double found = 0.0;
  for (const DocumentCell& cell : report->cells) {
    for (const double share : cell.found) {
      if (cell.arm == "streaming, recall") found += share;
      if (cell.arm == "streaming") found -= share;
    }
  }
  EXPECT_GT(found, 1.5);
}

// The bundled model was trained for 16384 tokens.
TEST(DocumentBench, past_the_trained_context_nothing_is_asked_with_everything_hot) {
  const Result<DocumentReport> report = run_small("passkey", QuestionPlace::kLast, {"recall"}, 16500, 1);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->cells.size(), 1U);
  EXPECT_EQ(report->cells.front().arm, "streaming, recall");
}

// Where all of a document tells the answer, an oracle has nothing to choose.
TEST(DocumentBench, what_all_of_a_document_tells_has_no_oracle) {
  const Result<DocumentReport> report = run_small("fwe", QuestionPlace::kLast, {"alone", "oracle"}, 1000, 1);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->cells.size(), 2U);
  for (const DocumentCell& cell : report->cells) {
    EXPECT_FALSE(cell.arm.ends_with("oracle"));
    EXPECT_TRUE(cell.found.empty());
  }
}

const DocumentCell& cell_of(const DocumentReport& report, std::string_view arm) {
  return *std::ranges::find(report.cells, arm, &DocumentCell::arm);
}

// The files' first has the number; what calls of tools returned comes back like what the user said.
TEST(DocumentBench, an_agent_finds_the_setting_that_it_read_first) {
  for (const QuestionPlace place : {QuestionPlace::kNext, QuestionPlace::kTool}) {
    const Result<DocumentReport> report = run_small("agent", place, {"alone", "recall", "oracle"}, 1600, 2);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_DOUBLE_EQ(mean_of(cell_of(*report, "streaming, oracle").found), 1.0);
    EXPECT_GT(mean_of(cell_of(*report, "streaming, recall").found), mean_of(cell_of(*report, "streaming").found));
  }
}

// Few blocks in RAM and a disk for the others: the same bytes come back.
TEST(DocumentBench, a_disk_gives_the_answers_that_ram_gives) {
  const Result<DocumentReport> report = run_small("multifact", QuestionPlace::kLast, {"recall", "disk"}, 1200, 1);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const DocumentCell& ram = cell_of(*report, "streaming, recall");
  EXPECT_EQ(ram.said, cell_of(*report, "streaming, recall, disk").said);
  EXPECT_THAT(document_text(*report), testing::HasSubstr("5 of 5"));
}

// Messages of their own, and what is needed is found by their names.
TEST(DocumentBench, what_was_pushed_out_comes_back_and_is_computed_again) {
  const Result<DocumentReport> report =
      run_small("churn", QuestionPlace::kNext, {"oracle", "recompute", "discard"}, 1200, 1);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GT(mean_of(cell_of(*report, "streaming, oracle").found), 0.9);
  EXPECT_GT(mean_of(cell_of(*report, "streaming, recompute").found), 0.9);
  EXPECT_LT(mean_of(cell_of(*report, "streaming, discard").found), 0.5);
  EXPECT_THAT(document_text(*report), testing::HasSubstr("computed again"));
}

TEST(DocumentBench, refuses_what_leaves_nothing_to_ask_and_policies_that_there_are_not) {
  EXPECT_EQ(run_document({.model = kModel, .kinds = {}}).status().code(), Code::kInvalidArgument);
  EXPECT_FALSE(run_document({.model = kModel, .arms = {.policies = {"nobody"}, .arms = {"alone"}}}).ok());
}

TEST(DocumentBench, names_of_places_lead_back) {
  for (const QuestionPlace place : {QuestionPlace::kLast, QuestionPlace::kFirst, QuestionPlace::kMiddle,
                                    QuestionPlace::kInstructed, QuestionPlace::kNext, QuestionPlace::kTool}) {
    EXPECT_EQ(find_question_place(name_of(place)), place);
  }
  EXPECT_FALSE(find_question_place("nowhere").has_value());
}

}  // namespace
}  // namespace ebb::document_test
