// What a reply's own queries look for among blocks that left, while it is written.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/sessions.h"

namespace ebb {
namespace {

class RecallWhileWriting : public Sessions {
 protected:
  // Whatever scores at all: a random model looks for nothing in particular.
  static RecallAsk anything(const std::string& selectors = "digest:least=0,worth=0") {
    return {.cues = find_cues("anything"), .max_blocks = 2, .selectors = SelectorList::parse(selectors).value()};
  }

  std::unique_ptr<Session> long_session(std::int32_t budget_tokens = 192) {
    std::unique_ptr<Session> session = new_session(budget_tokens);
    say(*session, "quagga " + kLongText + " zebra " + kLongText, {.max_tokens = 1});
    return session;
  }

  // A reply of so many tokens, whatever the model would say.
  static GenerationOptions reply(std::int32_t n_tokens, RecallAsk ask) {
    return {.sampling = {.ignore_eos = true}, .max_tokens = n_tokens, .recall = std::move(ask)};
  }

  [[nodiscard]] std::int64_t n_told() const {
    return std::ranges::count(last_.looks, Moment::kWhileWriting, &RecallLook::moment);
  }
};

TEST_F(RecallWhileWriting, a_reply_that_goes_on_has_back_what_its_last_words_look_for) {
  const auto session = long_session();
  say(*session, "where is it", reply(60, anything()));
  ASSERT_EQ(last_.n_generated, 60);
  EXPECT_GE(last_.writing.n, 3);
  EXPECT_GT(last_.writing.n_found, 0);
  EXPECT_LE(last_.writing.n_found, last_.writing.n);
  EXPECT_GT(last_.writing.ms, 0.0);
  EXPECT_EQ(n_told(), last_.writing.n_found);
  // More than the two that came for the question, and no block twice at a time: the budget held.
  EXPECT_GT(last_.acts.recalled.size(), 2U);
  EXPECT_LE(last_.reply.peak_frames, last_.reply.budget.n_frames);
  // What the prompt was is counted as it stood when the reply began.
  EXPECT_LE(last_.n_computed_again, kTailQueries * kMostTailLooks);
}

// What comes for the next words does not take the place of what these words look at.
TEST_F(RecallWhileWriting, what_the_replys_queries_use_stays) {
  std::int32_t n_used = 0;
  for (std::int32_t n_tokens = 8; n_tokens <= 60; n_tokens += 4) {
    const auto session = long_session();
    say(*session, "where is it", reply(n_tokens, anything()));
    ASSERT_FALSE(last_.looks.empty());
    const RecallLook& look = last_.looks.back();
    if (look.moment != Moment::kWhileWriting) continue;
    const auto used = std::ranges::find(look.told, Verdict::kKeep,
                                        [](const RecallLook::Told& told) { return told.considered.verdict; });
    if (used == look.told.end()) continue;
    ++n_used;
    EXPECT_TRUE(session->hot().is_hot(used->considered.block)) << n_tokens << ' ' << used->name;
  }
  EXPECT_GE(n_used, 4);
}

// What a short answer looks for is its next word.
TEST_F(RecallWhileWriting, after_each_of_the_first_words_somebody_looks_and_later_now_and_then) {
  const auto session = long_session();
  say(*session, "where is it", reply(8, anything()));
  EXPECT_GE(last_.writing.n, 5);
  const std::int32_t n_first = last_.writing.n;
  say(*session, "where is it", reply(108, anything()));
  EXPECT_GT(last_.writing.n, n_first);
  EXPECT_LT(last_.writing.n, 70);
}

TEST_F(RecallWhileWriting, who_does_not_want_it_says_so) {
  const auto session = long_session();
  say(*session, "where is it", reply(60, anything("digest:least=0,worth=0,writing=0")));
  EXPECT_EQ(last_.writing.n, 0);
  // By the question's queries, each look two at most.
  EXPECT_GT(last_.acts.recalled.size(), 0U);
  EXPECT_LE(last_.acts.recalled.size(), 2U * kMostTailLooks);
}

TEST_F(RecallWhileWriting, words_alone_ask_no_queries) {
  const auto session = long_session();
  say(*session, "where is the quagga", reply(60, anything("identity+lexical:writing=0")));
  EXPECT_EQ(last_.writing.n, 0);
  say(*session, "where is the quagga", reply(60, anything("identity+lexical")));
  for (const RecallLook& look : last_.looks) {
    EXPECT_FALSE(goes_by_queries(look.moment) && look.selector != "lexical") << look.selector;
  }
}

TEST_F(RecallWhileWriting, where_all_is_hot_nothing_is_looked_for) {
  const auto session = long_session(640);
  say(*session, "where is it", reply(60, anything()));
  EXPECT_EQ(last_.writing.n, 0);
  EXPECT_TRUE(last_.acts.recalled.empty());
}

TEST_F(RecallWhileWriting, the_same_reply_is_written_again) {
  std::vector<std::vector<Token>> said;
  for (int i = 0; i < 2; ++i) {
    const auto session = long_session();
    const auto asked = start(*session, "where is it", reply(60, anything()));
    finish(*session, *asked);
    EXPECT_GT(asked->turn_stats().writing.n_found, 0);
    said.push_back(asked->tokens());
  }
  EXPECT_EQ(said[0], said[1]);
}

TEST_F(RecallWhileWriting, without_bytes_what_is_looked_for_is_computed_again_between_words) {
  const auto session = open_session({.budget_tokens = 192, .remains = Remains::kTokens});
  say(*session, "quagga " + kLongText + " zebra " + kLongText, {.max_tokens = 1});
  say(*session, "where is it", reply(60, anything()));
  EXPECT_EQ(last_.n_generated, 60);
  EXPECT_GT(last_.writing.n_found, 0);
  EXPECT_GT(last_.acts.recomputed.size(), 0U);
  EXPECT_LE(last_.reply.peak_frames, last_.reply.budget.n_frames);
}

}  // namespace
}  // namespace ebb
