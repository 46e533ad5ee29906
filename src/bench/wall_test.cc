#include "bench/wall.h"

#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "bench/sections.h"
#include "model/random_model.h"
#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

TEST(WallSession, every_section_states_its_own_fact_and_asks_for_it) {
  const ToyFile file(toy_bpe().bytes());
  const std::unique_ptr<Vocabulary> vocabulary = *Vocabulary::load(file.path());
  const std::vector<Section> sections = *make_sections(*vocabulary, 12, 200, 3);
  ASSERT_EQ(sections.size(), 12U);
  std::set<std::string> questions;
  for (const Section& section : sections) {
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

  // Each turn is told, and adds up to what the session counted; it never ends with more hot than it may have.
  ASSERT_EQ(ours.turns.size(), 8U + 3U);
  std::int64_t n_evicted = 0;
  std::int64_t n_recalled = 0;
  for (const WallTurn& turn : ours.turns) {
    EXPECT_LE(turn.hot_tokens, ours.budget_tokens);
    n_evicted += turn.n_evicted;
    n_recalled += turn.n_recalled;
  }
  EXPECT_EQ(n_evicted, ours.n_evicted);
  EXPECT_EQ(n_recalled, ours.n_recalled);
  EXPECT_EQ(report->arms[2].turns.size(), static_cast<std::size_t>(report->arms[2].n_sections));
  ASSERT_EQ(ours.answers.size(), 3U);
  EXPECT_GT(ours.answers[0].n_read, 7 * 512) << "seven sections were read since the first";
  EXPECT_LT(ours.answers[2].n_read, ours.answers[0].n_read);
  EXPECT_EQ(report->arms[3].answers[0].n_read, 0) << "the ceiling asks right behind the section";

  const std::filesystem::path page_path =
      std::filesystem::temp_directory_path() / fmt::format("ebb_wall_{}.html", getpid());
  ASSERT_TRUE(write_wall_html(page_path, *report).ok());
  std::ostringstream page;
  page << std::ifstream(page_path).rdbuf();
  std::filesystem::remove(page_path);
  for (const char* part : {"Hot tokens when a turn has settled", "budget (", "recalled, ebb", "wrong",
                           "no eviction: 0 of 3", "ended in section", "</html>"}) {
    EXPECT_THAT(page.str(), HasSubstr(part));
  }
}

TEST(Wall, more_questions_than_sections_are_refused) {
  EXPECT_EQ(run_wall({.n_sections = 2, .n_questions = 3}).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ebb
