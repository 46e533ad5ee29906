#include "bench/resend.h"

#include <algorithm>
#include <fstream>
#include <ranges>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "bench/baseline.h"
#include "bench/gapfill.h"
#include "model/random_model.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

// A model that knows nothing: the protocol, not its answers.
class ResendTest : public testing::Test {
 protected:
  ResendTest() { EXPECT_TRUE(write_random_model({.n_ctx_train = 1024}, path_).ok()); }
  ~ResendTest() override { std::filesystem::remove(path_); }

  [[nodiscard]] ResendSetup setup() const { return {.model = path_, .n_threads = 1, .block_size = 16}; }
  [[nodiscard]] GapfillOptions gapfill(std::vector<std::int32_t> chunks) const {
    return {.setup = setup(),
            .chunks = std::move(chunks),
            .budgets = {400},
            .n_sessions = 1,
            .chunk_characters = 100,
            .n_before = 3,
            .n_between = 1};
  }

  static const ResendSide& side_of(const ResendCase& played, ResendArm arm) {
    return *std::ranges::find(played.sides, arm, &ResendSide::arm);
  }

  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / fmt::format("ebb_resend_test_{}.gguf", getpid());
};

TEST_F(ResendTest, all_arms_of_gapfill_read_and_ask_the_same_under_the_budget_they_claim) {
  const Result<ResendReport> report = run_gapfill(gapfill({3, 4}));
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->cases.size(), 2U);
  const ResendCase& played = report->cases[1];
  ASSERT_EQ(played.sides.size(), 4U);
  for (const ResendSide& side : played.sides) {
    EXPECT_EQ(side.n_questions, 2) << "behind the third chunk and behind the fourth";
    const ResendSession& session = side.sessions.front();
    EXPECT_EQ(session.ended_by, "") << resend_arm_name(side.arm);
    ASSERT_EQ(session.turns.size(), 6U);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(session.turns[i].asks, i == 3 || i == 5);
    EXPECT_GT(session.turns.back().history_tokens, 400) << "else nothing has to leave";
    for (const ResendTurn& turn : session.turns) {
      EXPECT_GT(turn.n_computed, 0);
      EXPECT_LT(turn.overhead_ms, turn.ms);
      EXPECT_TRUE(side.arm == ResendArm::kNone || turn.hot_tokens <= 400) << turn.hot_tokens;
    }
  }
  for (const ResendArm arm : {ResendArm::kOurs, ResendArm::kAware}) {
    EXPECT_LE(side_of(played, arm).sessions.front().peak_hot_tokens, 400);
  }
  EXPECT_GT(side_of(played, ResendArm::kEverything).sessions.front().peak_hot_tokens, 400);
  EXPECT_GT(side_of(played, ResendArm::kOurs).sessions.front().turns.back().n_recalled, 0);
  EXPECT_FALSE(side_of(played, ResendArm::kNone).sessions.front().answers.front().was_cold);
}

TEST_F(ResendTest, a_lower_mark_makes_room_for_more_at_once_of_the_arms_that_evict) {
  GapfillOptions options = gapfill({4});
  const Result<ResendReport> at_need = run_gapfill(options);
  options.setup.watermarks.low = 0.5;
  const Result<ResendReport> at_once = run_gapfill(options);
  ASSERT_TRUE(at_need.ok() && at_once.ok());
  const auto hot_tokens = [&](const ResendReport& report, ResendArm arm) {
    std::vector<std::int32_t> hot;
    for (const ResendTurn& turn : side_of(report.cases[0], arm).sessions.front().turns) hot.push_back(turn.hot_tokens);
    return hot;
  };
  EXPECT_EQ(hot_tokens(*at_once, ResendArm::kNone), hot_tokens(*at_need, ResendArm::kNone));
  // Recall fills what was left free.
  EXPECT_NE(hot_tokens(*at_once, ResendArm::kOurs), hot_tokens(*at_need, ResendArm::kOurs));
  EXPECT_LT(std::ranges::min(hot_tokens(*at_once, ResendArm::kAware) | std::views::drop(3)),
            std::ranges::min(hot_tokens(*at_need, ResendArm::kAware) | std::views::drop(3)));
  EXPECT_THAT(resend_text(*at_once), HasSubstr("at 1 to 0.5 of the budget"));
}

TEST_F(ResendTest, where_nothing_is_evicted_the_trained_context_ends_the_session) {
  const Result<ResendReport> report = run_gapfill(gapfill({12}));
  ASSERT_TRUE(report.ok()) << report.status().message();
  const ResendCase& played = report->cases[0];
  EXPECT_THAT(side_of(played, ResendArm::kNone).sessions.front().ended_by, HasSubstr("trained for"));
  EXPECT_EQ(side_of(played, ResendArm::kOurs).sessions.front().ended_by, "");
  EXPECT_GT(side_of(played, ResendArm::kOurs).sessions.front().turns.back().history_tokens, 1024);
  EXPECT_THAT(resend_text(*report), HasSubstr("12 chunks, budget 400: none ended early"));
}

TEST_F(ResendTest, who_truncates_says_only_what_fits_and_computes_it_again) {
  const Result<ResendReport> report =
      run_baseline({.setup = setup(), .turns = {10}, .budget_tokens = 400, .n_sessions = 2, .message_tokens = 64});
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->cases[0].sides.size(), 3U);
  const ResendSide& truncate = side_of(report->cases[0], ResendArm::kTruncate);
  const ResendSide& ours = side_of(report->cases[0], ResendArm::kOurs);
  ASSERT_EQ(truncate.sessions.size(), 2U);
  for (const ResendSession& session : truncate.sessions) {
    EXPECT_EQ(session.turns.size(), 10U);
    EXPECT_TRUE(session.answers.front().was_cold);
    EXPECT_FALSE(session.answers.front().was_found) << "the client has left it out";
    for (const ResendTurn& turn : session.turns) EXPECT_LE(turn.history_tokens, 400);
  }
  EXPECT_GT(ours.sessions[0].turns.back().history_tokens, 400);
  // What a policy keeps, and so what is cold, is the model's affair, and so is whether it copies what came back.
  EXPECT_TRUE(std::ranges::any_of(ours.sessions, [](const ResendSession& session) {
    return session.answers.front().was_cold && session.answers.front().was_found;
  })) << "recalled by the words of the question";
  const auto n_computed = [](const ResendSession& session) {
    std::int32_t n = 0;
    for (const ResendTurn& turn : session.turns) n += turn.n_computed;
    return n;
  };
  EXPECT_GT(n_computed(truncate.sessions[0]), n_computed(ours.sessions[0]));
}

TEST_F(ResendTest, writes_a_table_json_and_a_page) {
  const Result<ResendReport> report = run_gapfill(gapfill({3}));
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(resend_text(*report), HasSubstr("everything"));
  const std::filesystem::path out = std::filesystem::path(path_).replace_extension("out");
  const auto read = [&] {
    std::ostringstream text;
    text << std::ifstream(out).rdbuf();
    return text.str();
  };
  ASSERT_TRUE(write_resend_json(out, *report).ok());
  EXPECT_THAT(read(), HasSubstr("\"arm\": \"aware\""));
  ASSERT_TRUE(write_resend_html(out, *report).ok());
  EXPECT_THAT(read(), HasSubstr("hot tokens when a turn has settled"));
  std::filesystem::remove(out);
}

TEST_F(ResendTest, refuses_what_cannot_be_measured) {
  EXPECT_EQ(run_gapfill(gapfill({})).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(run_gapfill(gapfill({2})).status().code(), Code::kInvalidArgument) << "no chunk is behind the question's";
  EXPECT_EQ(run_baseline({.setup = setup(), .turns = {1}}).status().code(), Code::kInvalidArgument);
  GapfillOptions crossed = gapfill({3});
  crossed.setup.watermarks = {.high = 0.5, .low = 0.8};
  EXPECT_EQ(run_gapfill(crossed).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ebb
