// What a prompt's own queries look for among blocks that left: it comes back, and the tail is computed again with it.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/sessions.h"

namespace ebb {
namespace {

class RecallByDigest : public Sessions {
 protected:
  // Whatever scores at all.
  static RecallAsk anything(std::int32_t max_blocks = 2) {
    return {.cues = find_cues("anything"),
            .max_blocks = max_blocks,
            .selectors = SelectorList::parse("digest:least=0,worth=0,heads=0,writing=0").value()};
  }

  std::unique_ptr<Session> long_session(const std::string& begin = "quagga ") {
    std::unique_ptr<Session> session = new_session(192);
    say(*session, begin + kLongText + " zebra " + kLongText, {.max_tokens = 1});
    EXPECT_LT(session->n_hot_blocks(), session->n_blocks());
    return session;
  }

  static std::vector<std::string> names_of(const Session& session, const std::vector<BlockIndex>& blocks) {
    std::vector<std::string> names;
    for (const BlockIndex block : blocks) names.push_back(session.block_name(block));
    return names;
  }
};

TEST_F(RecallByDigest, what_comes_back_gives_what_having_had_it_before_the_tail_gives) {
  const auto session = long_session();
  const std::int32_t n_before = session->end().value();
  const auto asked = start(*session, "where is it", {.max_tokens = 12, .recall = anything()});
  finish(*session, *asked);
  const TurnStats stats = asked->turn_stats();
  // Whatever scores at all comes, two at a look, as long as there is room.
  ASSERT_GT(stats.acts.recalled.size(), 2U);
  EXPECT_EQ(stats.n_computed_again, 11 * kMostTailLooks);
  EXPECT_EQ(stats.from[Origin::kNew], 11);
  EXPECT_EQ(stats.from.total(), n_before + 11);
  EXPECT_EQ(stats.from[Origin::kRecalledExact], 16 * std::ssize(stats.acts.recalled));

  const auto twin = long_session();
  const auto told = start(*twin, "where is it",
                          {.max_tokens = 12,
                           .recall = {.names = names_of(*session, chosen_blocks(stats.looks)),
                                      .selectors = SelectorList::parse("identity").value()}});
  finish(*twin, *told);
  EXPECT_EQ(told->turn_stats().n_computed_again, 0);
  EXPECT_EQ(asked->tokens(), told->tokens());
  ASSERT_EQ(session->parts().size(), twin->parts().size());
  for (std::size_t i = 0; i < twin->parts().size(); ++i) {
    EXPECT_EQ(session->parts()[i].span, twin->parts()[i].span);
    EXPECT_EQ(session->parts()[i].name, twin->parts()[i].name);
  }
  for (std::int32_t b = 0; b < session->n_blocks(); ++b) {
    EXPECT_EQ(session->exact_name(BlockIndex(b)), twin->exact_name(BlockIndex(b))) << b;
  }
}

TEST_F(RecallByDigest, a_look_says_what_it_looked_at_and_what_it_chose) {
  const auto session = long_session();
  say(*session, "where is it", {.max_tokens = 4, .recall = anything(1)});
  ASSERT_EQ(last_.looks.size(), static_cast<std::size_t>(kMostTailLooks));
  const RecallLook& look = last_.looks.front();
  EXPECT_EQ(look.selector, "digest");
  EXPECT_EQ(look.moment, Moment::kBehindTail);
  EXPECT_GE(look.n_looked_at, session->n_hot_blocks());
  ASSERT_FALSE(look.told.empty());
  EXPECT_EQ(look.told.front().name, session->block_name(last_.acts.recalled.front()));
  EXPECT_TRUE(look.told.front().came);
  EXPECT_EQ(chosen_blocks(last_.looks).front(), last_.acts.recalled.front());
  for (const RecallLook::Told& told : look.told) {
    EXPECT_GE(told.considered.score, 0.0);
    EXPECT_LE(told.considered.score, 1.0);
  }
}

TEST_F(RecallByDigest, what_is_computed_again_came_back_too) {
  const auto session = new_session(192, Remains::kTokens);
  say(*session, "quagga " + kLongText + " zebra " + kLongText, {.max_tokens = 1});
  say(*session, "the quagga", {.max_tokens = 4, .recall = {.cues = find_cues("the quagga")}});
  EXPECT_TRUE(last_.acts.recalled.empty());
  ASSERT_FALSE(last_.acts.recomputed.empty());
  EXPECT_EQ(last_.acts.n_back(), last_.acts.recomputed.size());
  const auto look = std::ranges::find(last_.looks, "lexical", &RecallLook::selector);
  ASSERT_TRUE(look != last_.looks.end());
  ASSERT_FALSE(look->told.empty());
  EXPECT_EQ(look->told.front().considered.block, last_.acts.recomputed.front());
  EXPECT_TRUE(look->told.front().came);
}

TEST_F(RecallByDigest, a_block_comes_back_in_the_heads_that_look_at_it) {
  const auto session = long_session();
  RecallAsk ask = anything();
  ask.selectors = SelectorList::parse("digest:least=0,worth=0,heads=0.9,writing=0").value();
  say(*session, "where is it", {.max_tokens = 4, .recall = ask});
  std::size_t n_partly = 0;
  for (const BlockIndex block : last_.acts.recalled) {
    const std::vector<std::int32_t> heads = chosen_heads(last_.looks, block);
    // The first token's, and what left again for the reply.
    if (heads.empty() || block.value() == 0 || session->hot().n_hot_frames(block) == 0) continue;
    ++n_partly;
    EXPECT_LE(session->hot().n_hot_frames(block), std::ssize(heads));
    session->hot().hot_heads(block).for_each(
        [&](std::size_t head) { EXPECT_NE(std::ranges::find(heads, static_cast<std::int32_t>(head)), heads.end()); });
  }
  EXPECT_GT(n_partly, 0U);
  // More than two blocks have room in that of two.
  EXPECT_GT(last_.acts.recalled.size(), 2U);
  EXPECT_GT(last_.n_computed_again, 0);
}

TEST_F(RecallByDigest, where_nothing_left_nothing_is_computed_again_and_no_digest_is_kept_before_somebody_asks) {
  const auto session = new_session(640);
  say(*session, "quagga " + kLongText, {.max_tokens = 1});
  EXPECT_EQ(session->digest_bytes(), 0U);
  say(*session, "where is it", {.max_tokens = 4, .recall = anything()});
  EXPECT_EQ(last_.n_computed_again, 0);
  EXPECT_TRUE(last_.acts.recalled.empty());
}

TEST_F(RecallByDigest, a_question_in_one_prompt_with_what_left_is_asked_too) {
  const auto session = new_session(192);
  say(*session, "quagga " + kLongText + " zebra " + kLongText + " where is it",
      {.max_tokens = 4, .recall = anything()});
  EXPECT_GE(last_.acts.recalled.size(), 2U);
  EXPECT_GT(last_.n_computed_again, 0);
  EXPECT_LE(last_.n_computed_again, kTailQueries * kMostTailLooks);
  EXPECT_EQ(last_.from[Origin::kNew] + last_.from[Origin::kHole] + last_.from[Origin::kRecalledExact],
            session->end().value() + session->n_unfinished() - last_.n_generated);
}

TEST_F(RecallByDigest, what_is_computed_again_is_not_taken_from_what_was_computed_before) {
  // As a server's sessions, which copy rows that another computed for the same tokens behind the same blocks.
  const auto session = open_session({.budget_tokens = 192, .adopts = true});
  say(*session, "quagga " + kLongText + " zebra " + kLongText + kLongText, {.max_tokens = 1, .recall = anything()});
  EXPECT_GT(last_.n_computed_again, 16);
  EXPECT_EQ(last_.n_adopted, 0);
  EXPECT_EQ(last_.n_computed, session->end().value() + session->n_unfinished() - last_.n_generated);
}

TEST_F(RecallByDigest, keys_of_every_type_are_found_by_their_digests) {
  // q8_0 wants heads of 32, and the model's are of 16.
  for (const RowType type : {RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kKivi4}) {
    SCOPED_TRACE(row_type_name(type));
    open({.kv_type = type});
    const auto session = long_session();
    say(*session, "where is it", {.max_tokens = 4, .recall = anything()});
    EXPECT_GE(last_.acts.recalled.size(), 2U);
    EXPECT_GT(last_.n_computed_again, 0);
  }
}

TEST_F(RecallByDigest, with_little_memory_for_digests_words_are_what_finds) {
  open({.digest_bytes = 4096});
  const auto session = long_session();
  EXPECT_LE(session->digest_bytes(), 4096U);
  RecallAsk ask = anything();
  ask.selectors = SelectorList::fused();
  ask.cues = find_cues("quagga");
  say(*session, "where is the quagga", {.max_tokens = 4, .recall = ask});
  EXPECT_FALSE(last_.acts.recalled.empty());
}

TEST_F(RecallByDigest, a_session_that_comes_back_finds_what_its_image_left_cold) {
  const auto session = long_session();
  ASSERT_TRUE(session->save().ok());
  const SessionImage image = session->image();
  const auto look = [&](Session& of) {
    say(of, "where is it", {.max_tokens = 4, .recall = anything(4)});
    return last_.looks.back();
  };
  Result<std::unique_ptr<Session>> again = engine_->restore_session(session->options(), image);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ((*again)->digest_bytes(), 0U);
  const RecallLook found = look(**again);
  EXPECT_GT((*again)->digest_bytes(), 0U);
  EXPECT_GE(found.n_looked_at, session->n_blocks() - 2);
  // And the open block, which what is said joins.
  EXPECT_EQ(last_.acts.recalled.size(), 4U * kMostTailLooks + 1);

  // Where the store has lost them, blocks are found once they have been hot.
  const auto other = long_session("okapi ");
  Result<std::unique_ptr<Session>> bare = engine_->restore_session(other->options(), other->image());
  ASSERT_TRUE(bare.ok());
  EXPECT_LT(look(**bare).n_looked_at, other->n_blocks() - 2);
}

TEST_F(RecallByDigest, digests_go_with_what_is_forgotten) {
  const auto session = long_session();
  const std::size_t n_bytes = session->digest_bytes();
  EXPECT_GT(n_bytes, 0U);
  session->cut(Position(32));
  EXPECT_LT(session->digest_bytes(), n_bytes);
  session->cut(Position(0));
  EXPECT_EQ(session->digest_bytes(), 0U);
}

}  // namespace
}  // namespace ebb
