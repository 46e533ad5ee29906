// The first tokens of blocks that came back, computed again where they lie: what that changes, and what it leaves as it was.
#include "session/renewal.h"

#include <cstring>

#include <ggml.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/turn.h"
#include "tests/by_words.h"
#include "tests/sessions.h"

namespace ebb {
namespace {

constexpr BlockIndex kBack{1};

class Renewals : public Sessions {
 protected:
  std::unique_ptr<Session> tell(RecallPlace place, std::int32_t n_renewed) {
    auto session =
        open_session({.budget_tokens = 160, .recall_place = place, .renewed_tokens = n_renewed, .adopts = false});
    say(*session, "yyyyyyyyyyyyyyy quagga " + kLongText + kLongText, {.max_tokens = 1});
    return session;
  }

  // It asks for a block that left, and that saw one that stays away.
  std::unique_ptr<Session> ask(RecallPlace place, std::int32_t n_renewed) {
    auto session = tell(place, n_renewed);
    EXPECT_FALSE(session->hot().is_hot(kBack));
    say(*session, "where", {.max_tokens = 1, .recall = by_words("quagga", 1)});
    EXPECT_THAT(last_.acts.recalled, testing::ElementsAre(kBack));
    return session;
  }

  // How many of the block's rows are the same, byte for byte, in all heads; they must be the last.
  std::int32_t count_same_rows(const Session& one, const Session& other) {
    const std::vector<std::byte> a = engine_->read_block(one, kBack);
    const std::vector<std::byte> b = engine_->read_block(other, kBack);
    const auto n_rows = static_cast<std::size_t>(one.block_size());
    // Keys lie by dimension, values by row: of a frame's second half, each row stands by itself.
    const std::size_t frame = a.size() / static_cast<std::size_t>(one.shape().frames_per_block());
    const std::size_t row = frame / 2 / n_rows;
    std::int32_t n_same = 0;
    for (std::size_t slot = 0; slot < n_rows; ++slot) {
      bool is_same = true;
      for (std::size_t at = frame / 2 + slot * row; at < a.size(); at += frame) {
        is_same &=
            std::equal(a.begin() + static_cast<std::ptrdiff_t>(at), a.begin() + static_cast<std::ptrdiff_t>(at + row),
                       b.begin() + static_cast<std::ptrdiff_t>(at));
      }
      EXPECT_TRUE(is_same || n_same == 0) << "a row behind one that is the same is another: " << slot;
      n_same += is_same ? 1 : 0;
    }
    return n_same;
  }
};

TEST_F(Renewals, the_first_tokens_of_what_came_back_are_computed_where_it_lies_and_no_others) {
  for (const RecallPlace place : {RecallPlace::kTail, RecallPlace::kCompacted}) {
    const auto moved = ask(place, 0);
    EXPECT_EQ(last_.n_renewed, 0);
    const std::int32_t n_computed = last_.from.n_computed();
    EXPECT_FALSE(moved->hot().is_renewed(kBack));
    const auto renewed = ask(place, 5);
    EXPECT_EQ(last_.n_renewed, 5);
    EXPECT_TRUE(renewed->hot().is_renewed(kBack));
    EXPECT_EQ(renewed->anchor(kBack), moved->anchor(kBack));
    EXPECT_GE(count_same_rows(*moved, *renewed), 11);
    EXPECT_EQ(last_.from[Origin::kRecalledApproximate], 16);
    EXPECT_EQ(last_.from.n_computed(), n_computed) << "a renewed token is none of the prompt's";
  }
}

TEST_F(Renewals, beside_what_a_block_was_computed_beside_it_becomes_what_it_was_but_for_last_bits) {
  const auto values_of = [&](const Session& session) {
    const std::vector<std::byte> bytes = engine_->read_block(session, kBack);
    std::vector<float> values;
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(ggml_fp16_t)) {
      ggml_fp16_t half = 0;
      std::memcpy(&half, &bytes[at], sizeof half);
      values.push_back(ggml_fp16_to_fp32(half));
    }
    return values;
  };
  const auto recalled = [&](std::int32_t n_renewed, std::int32_t n_blocks) {
    const auto session = tell(RecallPlace::kOriginal, n_renewed);
    say(*session, "where",
        {.max_tokens = 1, .recall = by_words(n_blocks == 2 ? "quagga yyyyyyyyyyyyyyy" : "quagga", n_blocks)});
    EXPECT_EQ(std::ssize(last_.acts.recalled), n_blocks);
    EXPECT_EQ(last_.n_renewed, n_blocks * n_renewed);
    return values_of(*session);
  };
  const std::vector<float> exact = recalled(0, 1);
  EXPECT_THAT(recalled(16, 2), testing::Pointwise(testing::FloatNear(0.02F), exact));
  EXPECT_THAT(recalled(16, 1), testing::Not(testing::Pointwise(testing::FloatNear(0.02F), exact)))
      << "it does not see what it saw";
}

TEST_F(Renewals, what_is_saved_of_a_block_stays_as_it_was) {
  const auto moved = ask(RecallPlace::kTail, 0);
  const auto renewed = ask(RecallPlace::kTail, 16);
  for (Session* const session : {moved.get(), renewed.get()}) {
    session->evict(std::vector{kBack});
    ASSERT_THAT(session->recall(std::vector{kBack}).recalled, testing::ElementsAre(kBack));
    session->check_invariants();
  }
  EXPECT_FALSE(renewed->hot().is_renewed(kBack)) << "no turn asked for it";
  EXPECT_EQ(engine_->read_block(*renewed, kBack), engine_->read_block(*moved, kBack));
  EXPECT_EQ(renewed->exact_name(kBack), moved->exact_name(kBack));
}

TEST_F(Renewals, what_is_computed_behind_is_named_by_what_it_saw) {
  const auto exact = ask(RecallPlace::kOriginal, 0);
  const auto renewed = ask(RecallPlace::kOriginal, 4);
  EXPECT_EQ(last_.n_renewed, 4);
  const BlockIndex before(renewed->n_blocks() - 2);
  EXPECT_EQ(renewed->exact_name(before), exact->exact_name(before)) << "it was there before";
  EXPECT_EQ(renewed->exact_name(kBack), exact->exact_name(kBack)) << "its record is what it was";
  for (Session* const session : {exact.get(), renewed.get()}) {
    session->set_pinned(kBack, true);
    say(*session, kLongText.substr(0, 40), {.max_tokens = 1});
  }
  const BlockIndex behind(renewed->n_blocks() - 2);
  ASSERT_EQ(renewed->n_blocks(), exact->n_blocks());
  EXPECT_TRUE(exact->hot().info(behind).is_exact);
  EXPECT_FALSE(renewed->hot().info(behind).is_exact);
  EXPECT_NE(renewed->exact_name(behind), exact->exact_name(behind));
}

TEST_F(Renewals, a_step_that_is_given_up_takes_the_block_along_and_the_session_goes_on) {
  const auto session = tell(RecallPlace::kTail, 8);
  const std::vector<Token> question = tokenize("where");
  {
    Turn turn(*session, Prompt(question));
    turn.recall(by_words("quagga", 1));
    turn.prepare_all(4);
    ASSERT_TRUE(session->hot().is_hot(kBack));
    const Result<SequenceInput> step = turn.begin_step(4);
    ASSERT_TRUE(step.ok());
    ASSERT_EQ(step->first, Position(16));
    EXPECT_EQ(std::ssize(step->tokens), 4);
    turn.abandon_step();
    EXPECT_EQ(session->hot().n_hot_frames(kBack), 0) << "nobody knows what it holds";
    EXPECT_EQ(turn.settle().n_renewed, 0);
    session->check_invariants();
  }
  say(*session, "where", {.max_tokens = 1, .recall = by_words("quagga", 1)});
  EXPECT_TRUE(session->hot().is_hot(kBack));
  EXPECT_EQ(last_.n_renewed, 8);
}

TEST_F(Renewals, a_turn_that_ends_between_two_pieces_leaves_no_half_of_a_block) {
  const auto session = tell(RecallPlace::kTail, 8);
  const std::vector<Token> question = tokenize("where");
  Turn turn(*session, Prompt(question));
  turn.recall(by_words("quagga", 1));
  turn.prepare_all(4);
  ASSERT_TRUE(turn.begin_step(4).ok());
  turn.end_step();
  EXPECT_EQ(turn.settle().n_renewed, 4);
  EXPECT_EQ(session->hot().n_hot_frames(kBack), 0);
  session->check_invariants();
}

TEST_F(Renewals, what_moves_once_more_is_turned_from_what_was_saved) {
  const auto session = ask(RecallPlace::kTail, 4);
  session->set_pinned(kBack, true);
  while (session->stats().n_rebases == 0) say(*session, kLongText, {.max_tokens = 1});
  ASSERT_TRUE(session->hot().is_hot(kBack));
  EXPECT_FALSE(session->hot().is_renewed(kBack));
  session->check_invariants();
}

// What comes into some heads of it comes as it was saved: it is neither what its name means nor what it was.
TEST_F(Renewals, a_block_that_left_some_heads_and_came_back_there_is_still_not_what_its_name_means) {
  const auto session = ask(RecallPlace::kOriginal, 4);
  const Hash128 renewed = session->hot().renewed(kBack);
  HeadSet one(session->shape().n_heads());
  one.add(0);
  session->evict(std::vector{kBack}, one);
  session->recall(std::vector{kBack});
  ASSERT_TRUE(session->hot().is_hot(kBack));
  session->check_invariants();
  EXPECT_TRUE(session->hot().is_renewed(kBack));
  EXPECT_NE(session->hot().renewed(kBack), renewed);
  EXPECT_TRUE(session->hot().is_turned(kBack));
  EXPECT_FALSE(session->hot().is_listed(kBack));
}

TEST_F(Renewals, blocks_that_are_no_more_are_left_out) {
  const auto session = tell(RecallPlace::kTail, 4);
  Renewal renewal(*session);
  renewal.add(std::vector{BlockIndex(session->n_blocks()), BlockIndex(1 << 20)});
  Acts acts;
  EXPECT_FALSE(renewal.begin_step(16, acts).has_value());
}

TEST_F(Renewals, how_many_is_within_bounds) {
  EXPECT_EQ(SessionOptions{.renewed_tokens = -1}.validate().code(), Code::kInvalidArgument);
  EXPECT_EQ(SessionOptions{.renewed_tokens = kMostRenewed + 1}.validate().code(), Code::kInvalidArgument);
  EXPECT_TRUE(SessionOptions{.renewed_tokens = kMostRenewed}.validate().ok());
}

}  // namespace
}  // namespace ebb
