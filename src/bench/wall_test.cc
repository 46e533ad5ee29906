#include "bench/wall.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/wall_session.h"
#include "model/random_model.h"
#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

TEST(WallSession, every_section_states_its_own_fact_and_asks_for_it) {
  const ToyFile file(toy_bpe().bytes());
  const std::unique_ptr<Vocabulary> vocabulary = *Vocabulary::load(file.path());
  const std::vector<WallSection> sections = *make_wall_sections(*vocabulary, 12, 200, 3);
  ASSERT_EQ(sections.size(), 12U);
  std::set<std::string> questions;
  for (const WallSection& section : sections) {
    EXPECT_THAT(section.text, HasSubstr(" is " + section.answer + "."));
    EXPECT_GE(vocabulary->tokenize(section.text)->size(), 200U);
    EXPECT_TRUE(questions.insert(section.question).second);
  }
}

// A model that knows nothing: the bench's bookkeeping, not its answers.
TEST(Wall, arms_keep_their_budgets_and_end_where_they_must) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "ebb-wall-test.gguf";
  ASSERT_TRUE(write_random_model({.n_ctx_train = 1024}, path).ok());
  const Result<WallReport> report = run_wall(
      {.model = path, .n_threads = 1, .session_tokens = 4096, .n_sections = 8, .n_questions = 3, .block_size = 16});
  std::filesystem::remove(path);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->arms.size(), 4U);
  const WallArm& ours = report->arms[0];
  EXPECT_EQ(ours.n_sections, 8);
  EXPECT_GT(ours.session_tokens, 4 * 1024 - 1);
  EXPECT_LE(ours.peak_hot_tokens, ours.budget_tokens);
  EXPECT_LT(ours.budget_tokens, 1024 / 4);
  EXPECT_GT(ours.n_rebases, 0);
  EXPECT_GT(ours.n_recalled, 0);
  EXPECT_EQ(report->arms[1].n_recalled, 0);
  EXPECT_THAT(report->arms[2].ended_by, HasSubstr("trained for"));
  EXPECT_LT(report->arms[2].n_sections, 8);
  EXPECT_EQ(report->arms[3].n_sections, 3);
  EXPECT_THAT(wall_text(*report), HasSubstr("no eviction ended in section"));
}

TEST(Wall, more_questions_than_sections_are_refused) {
  EXPECT_EQ(run_wall({.n_sections = 2, .n_questions = 3}).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ebb
