// Prompts that are read again for evidence: which rows the steps have, and that nothing of them stays. Without a model.
#include <algorithm>

#include <gtest/gtest.h>

#include "session/turn_test.h"

namespace ebb {
namespace {

class Rereads : public Turns {
 protected:
  static constexpr const char* kText =
      "one two three four five six seven eight nine ten eleven twelve thirteen fourteen";

  void SetUp() override {
    policy_ = make_policy("kvzip").value();
    session_ = make_session(kBudgetBlocks);
    tokens_ = *vocabulary_->tokenize(kText);
    ASSERT_GT(tokens_.size(), 40U);
  }

  // One step of up to n_rows; its tokens.
  std::vector<Token> step(Turn& turn, std::int32_t n_rows) {
    const Result<SequenceInput> input = turn.begin_step(n_rows);
    EXPECT_TRUE(input.ok()) << input.status().message();
    if (!input.ok()) return {};
    std::vector<Token> tokens(input->tokens.begin(), input->tokens.end());
    fill(*input);
    EXPECT_LE(session_->hot().n_hot_frames(), session_->budget().n_frames);
    turn.end_step();
    session_->check_invariants();
    return tokens;
  }

  [[nodiscard]] std::vector<Token> some(std::size_t begin, std::size_t end) const {
    return {tokens_.begin() + static_cast<std::ptrdiff_t>(begin), tokens_.begin() + static_cast<std::ptrdiff_t>(end)};
  }

  std::vector<Token> tokens_;
};

TEST_P(Rereads, each_step_of_a_prompt_is_followed_by_its_tokens_again_behind_those_that_lead_on_to_them) {
  Turn turn(*session_, Prompt(some(0, 40)));
  EXPECT_EQ(step(turn, 16), some(0, 16));
  EXPECT_EQ(turn.n_rereading(), 16);
  EXPECT_EQ(step(turn, 16), some(0, 16)) << "again; nothing comes before it";
  EXPECT_EQ(session_->end(), Position(16)) << "no row of it stays";
  EXPECT_EQ(step(turn, 16), some(16, 32));
  EXPECT_EQ(step(turn, 16), some(8, 24)) << "eight that lead on to it, and eight of its own";
  EXPECT_EQ(step(turn, 16), some(16, 32));
  EXPECT_EQ(turn.n_rereading(), 0);
  EXPECT_EQ(step(turn, 16), some(32, 40));
  EXPECT_EQ(turn.n_pending(), 0);
  EXPECT_EQ(turn.n_rereading(), 8) << "what comes behind the last step waits for the next";
  turn.push(tokens_[40]);
  EXPECT_EQ(step(turn, 16), some(24, 40));
  EXPECT_EQ(step(turn, 16), some(40, 41)) << "the reply's token";
  EXPECT_EQ(turn.n_rereading(), 0) << "replies are not read again";
  EXPECT_EQ(turn.settle().from[Origin::kNew], 40) << "each token counts once";
  check_every_hot_byte();
}

TEST_P(Rereads, a_step_without_rows_to_spare_leaves_it_to_the_next_one) {
  Turn turn(*session_, Prompt(some(0, 20)));
  EXPECT_EQ(step(turn, 16), some(0, 16));
  EXPECT_EQ(step(turn, 4), some(16, 20));
  EXPECT_EQ(turn.n_rereading(), 20);
  turn.settle();
}

TEST_P(Rereads, a_failed_step_is_tried_again_and_a_cut_forgets_what_it_took) {
  Turn turn(*session_, Prompt(some(0, 32)));
  EXPECT_EQ(step(turn, 16), some(0, 16));
  ASSERT_TRUE(turn.begin_step(16).ok());
  turn.abandon_step();
  session_->check_invariants();
  EXPECT_EQ(turn.n_rereading(), 16);
  EXPECT_EQ(step(turn, 16), some(0, 16));
  EXPECT_EQ(step(turn, 16), some(16, 32));
  turn.settle();
  session_->cut(Position(20));
  EXPECT_EQ(session_->unread(), (Span{Position(16), Position(20)}));
  session_->cut(Position(3));
  EXPECT_TRUE(session_->unread().empty());
}

TEST_P(Rereads, a_session_longer_than_its_budget_stays_inside_it_and_keeps_its_bytes) {
  std::vector<Token> longer;
  while (longer.size() < 20 * kBlockSize) longer.insert(longer.end(), tokens_.begin(), tokens_.end());
  Turn turn(*session_, Prompt(std::move(longer)));
  while (turn.n_pending() + turn.n_rereading() > 0 && !HasFailure()) step(turn, 48);
  turn.settle();
  check_every_hot_byte();
}

INSTANTIATE_TEST_SUITE_P(Orders, Rereads, ::testing::Values(KeyOrder::kByDim, KeyOrder::kByRow));

}  // namespace
}  // namespace ebb
