// That queries which nobody asks after go unobserved changes no choice: beside a session whose every step is observed, on the
// bundled model.
#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "bench/session_steps.h"
#include "tests/files.h"
#include "tests/solo.h"
#include "tests/solo_sessions.h"

namespace ebb::observe_test {
namespace {

constexpr std::int32_t kBlockSize = 16;
constexpr std::int32_t kRows = 64;
constexpr std::int32_t kBudgetTokens = 320;
constexpr std::int32_t kWindow = 32;

enum class Observes : std::uint8_t { kWhatTheyAsk, kEveryStep };

// A session, and where its blocks were hot behind each step.
struct Life {
  Life(const std::string& policy, Observes observes_which)
      : observes(observes_which),
        sessions(SoloSessions::open(bundled_model(), {.n_threads = 1, .block_size = kBlockSize, .n_ctx = 2048}, policy)
                     .value()),
        session(sessions->deps(nullptr),
                {.budget_tokens = kBudgetTokens, .recent_tokens = kBlockSize, .remains = Remains::kNothing}) {}

  void step(Turn& turn, std::int32_t n_rows = kRows) {
    Result<SequenceInput> input = turn.begin_step(n_rows);
    ASSERT_TRUE(input.ok()) << input.status().message();
    const auto n_tokens = static_cast<std::int32_t>(input->tokens.size());
    n_unobserved += input->n_mass_rows == 0 ? 1 : 0;
    if (observes == Observes::kEveryStep) {
      input->n_mass_rows = std::max(input->n_mass_rows, std::min(n_tokens, std::max(1, input->n_window_rows)));
    }
    ASSERT_TRUE(sessions->solo().runner().run({&*input, 1}).ok());
    turn.end_step(sessions->solo().runner().mass(0));
    session.check_invariants();
    ASSERT_LE(session.hot().n_hot_frames(), session.budget().n_frames);
    std::vector<std::vector<std::size_t>> now(static_cast<std::size_t>(session.n_blocks()));
    for (std::int32_t b = 0; b < session.n_blocks(); ++b) {
      session.hot().hot_heads(BlockIndex(b)).for_each([&](std::size_t head) {
        now[BlockIndex(b).index()].push_back(head);
      });
    }
    hot.push_back(now);
  }

  void say(std::int32_t n_tokens, std::uint32_t seed) {
    Turn turn(session, Prompt(make_random_tokens(sessions->deps(nullptr).vocabulary.n_tokens(), n_tokens, seed)));
    while (turn.n_pending() > 0) step(turn);
    for (std::int32_t i = 0; i < kWindow / 2; ++i) {
      turn.push(Token(100 + i));
      step(turn);
    }
    turn.settle();
  }

  Observes observes;
  std::unique_ptr<SoloSessions> sessions;
  Session session;
  int n_unobserved = 0;
  std::vector<std::vector<std::vector<std::size_t>>> hot;  // [step][block]
};

class Observed : public ::testing::TestWithParam<std::string> {};

TEST_P(Observed, the_same_leaves_at_every_step_of_prompts_longer_than_the_budget_as_if_every_step_were) {
  Life some(GetParam(), Observes::kWhatTheyAsk);
  Life all(GetParam(), Observes::kEveryStep);
  for (Life* const life : {&some, &all}) {
    life->say(150, 1);
    // Fits beside it by half, then goes far beyond.
    life->say(700, 2);
    life->say(50, 3);
  }
  EXPECT_EQ(some.hot, all.hot);
  EXPECT_GE(some.n_unobserved, 2);
  EXPECT_LT(some.session.hot().n_hot_frames(), some.session.n_blocks() * some.session.shape().frames_per_block())
      << "something left";
}

TEST_P(Observed, a_prompt_cancelled_before_it_was_goes_on_within_the_budget) {
  Life life(GetParam(), Observes::kWhatTheyAsk);
  life.say(100, 1);
  {
    Turn turn(life.session, Prompt(make_random_tokens(1000, 300, 2)));
    life.step(turn);
    life.step(turn);
    turn.settle();
  }
  EXPECT_GT(life.session.image().attention.entries.size(), 0U) << "what the first prompt looked at";
  // Others want the room; what was computed since is worth what the rest is on average, and nothing is certain to stay.
  const FrameBudget less = FrameBudget::of_tokens(6 * kBlockSize, life.session.shape());
  EXPECT_EQ(life.session.set_budget(less), less);
  EXPECT_EQ(life.session.hot().n_hot_frames(), less.n_frames);
  life.session.check_invariants();
  for (const std::optional<double>& score : life.session.scores()) {
    EXPECT_TRUE(score.value_or(0.0) >= 0.0 && score.value_or(0.0) <= 1.0);
  }
  // What waits is computed with the next prompt.
  life.say(40, 3);
  EXPECT_EQ(life.session.end().value(), 100 + kWindow / 2 + 300 + 40 + kWindow / 2);
}

INSTANTIATE_TEST_SUITE_P(Policies, Observed,
                         ::testing::Values("layer_defensivekv", "adakv:window=32", "snapkv:window=32", "tova"),
                         [](const auto& instance) { return instance.param.substr(0, instance.param.find(':')); });

}  // namespace
}  // namespace ebb::observe_test
