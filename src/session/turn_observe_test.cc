// Which steps of a prompt ask for what their queries look at: those whose notes a choice may see.
#include <gmock/gmock.h>

#include "session/turn_test.h"

namespace ebb {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr std::int32_t kRows = 32;

class TurnObserves : public Turns {
 protected:
  void use(const std::string& policy, std::int32_t budget_blocks) {
    session_.reset();
    policy_ = make_policy(policy).value();
    session_ = make_session(budget_blocks, {.adopts = false});
  }

  Prompt text(std::int32_t n_tokens) {
    return Prompt(*vocabulary_->tokenize(std::string(static_cast<std::size_t>(n_tokens), 'a')));
  }

  // Of up to n_steps steps; nobody gives any mass.
  std::vector<std::int32_t> n_observed(Turn& turn, int n_steps = 1 << 20) {
    std::vector<std::int32_t> n_observed;
    for (int i = 0; i < n_steps && turn.n_pending() > 0; ++i) {
      const Result<SequenceInput> input = turn.begin_step(kRows);
      EXPECT_TRUE(input.ok()) << input.status().message();
      if (!input.ok()) break;
      n_observed.push_back(input->n_mass_rows);
      fill(*input);
      turn.end_step();
      session_->check_invariants();
      EXPECT_LE(session_->hot().n_hot_frames(), session_->budget().n_frames);
    }
    return n_observed;
  }

  std::vector<std::int32_t> n_observed_of(const std::string& policy, std::int32_t budget_blocks,
                                          std::int32_t n_tokens) {
    use(policy, budget_blocks);
    Turn turn(*session_, text(n_tokens));
    return n_observed(turn);
  }
};

TEST_P(TurnObserves, a_prompt_that_fits_at_its_end_alone) {
  EXPECT_THAT(n_observed_of("adakv:window=16", 20, 160), ElementsAre(0, 0, 0, 0, 16));
  EXPECT_THAT(n_observed_of("tova", 20, 160), ElementsAre(0, 0, 0, 0, 1));
  EXPECT_THAT(n_observed_of("streaming", 20, 160), Each(0));
}

TEST_P(TurnObserves, the_step_before_the_last_where_that_is_shorter_than_the_window) {
  EXPECT_THAT(n_observed_of("adakv:window=16", 20, 3 * kRows + 15), ElementsAre(0, 0, 16, 15));
  EXPECT_THAT(n_observed_of("adakv:window=16", 20, 3 * kRows + 16), ElementsAre(0, 0, 0, 16));
}

TEST_P(TurnObserves, every_step_of_a_long_prompt_from_the_one_on_behind_which_something_leaves) {
  // The budget is four steps.
  EXPECT_THAT(n_observed_of("adakv:window=16", 8, 6 * kRows), ElementsAre(0, 0, 0, 16, 16, 16));
}

TEST_P(TurnObserves, the_step_behind_which_something_leaves_because_others_fill_the_pool) {
  use("adakv:window=16", 20);
  const std::unique_ptr<Session> other = make_session(56, {.adopts = false});
  Turn fills(*other, text(54 * kBlockSize));
  while (fills.n_pending() > 0) {
    ASSERT_TRUE(fills.begin_step(1 << 10).ok());
    fills.end_step();
  }
  Turn turn(*session_, text(4 * kRows));
  EXPECT_THAT(n_observed(turn), ElementsAre(0, 0, 16, 16)) << "six blocks are free";
}

TEST_P(TurnObserves, as_ever_where_all_queries_or_shares_are_asked_for) {
  EXPECT_THAT(n_observed_of("h2o", 20, 160), Each(kRows));
  EXPECT_THAT(n_observed_of("scored", 20, 160), Each(16));
}

TEST_P(TurnObserves, each_token_of_a_reply) {
  use("adakv:window=16", 20);
  Turn turn(*session_, text(100));
  n_observed(turn);
  for (int i = 0; i < 40; ++i) {
    turn.push(Token(5));
    EXPECT_THAT(n_observed(turn), ElementsAre(1));
  }
}

TEST_P(TurnObserves, nothing_of_a_prompt_that_is_cancelled_early_and_what_it_computed_may_leave_all_the_same) {
  for (const char* const policy : {"adakv:window=16", "snapkv:window=16", "tova"}) {
    use(policy, 20);
    {
      Turn turn(*session_, text(160));
      EXPECT_THAT(n_observed(turn, 3), ElementsAre(0, 0, 0)) << policy;
      turn.settle();
    }
    EXPECT_EQ(set_budget(4), 4);
    session_->check_invariants();
    EXPECT_LE(session_->hot().n_hot_frames(), session_->budget().n_frames);
    // Nobody looked at anything: the earliest go first, behind the first tokens, which are held.
    EXPECT_FALSE(session_->hot().is_hot(BlockIndex(1))) << policy;
    EXPECT_TRUE(session_->hot().is_hot(BlockIndex(5))) << policy;
    // What waits goes on.
    Turn next(*session_, text(1));
    n_observed(next);
    EXPECT_EQ(session_->end(), Position(161));
    check_every_hot_byte();
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, TurnObserves, ::testing::Values(KeyOrder::kByDim, KeyOrder::kByRow));

}  // namespace
}  // namespace ebb
