// Sessions whose policy is changed between two turns: what was noted, what is hot, the budget, and the bytes.
#include <gtest/gtest.h>

#include "tests/sessions.h"

namespace ebb {
namespace {

class PolicyChange : public Sessions {
 protected:
  static std::shared_ptr<const Policy> policy(std::string_view spec) { return make_policy(spec).value(); }

  // Every step keeps the budget in frames; policies of heads leave parts of blocks.
  void say_within_budget(Session& session, std::string_view text) {
    const auto generation = start(session, text, {.max_tokens = 4});
    Generation* const running = generation.get();
    while (!generation->finished()) {
      ASSERT_TRUE(engine_->step({&running, 1}).ok());
      session.check_invariants();
      ASSERT_LE(session.hot().n_hot_frames(), session.budget().n_frames);
    }
    ASSERT_TRUE(generation->status().ok()) << generation->status().message();
  }
};

TEST_F(PolicyChange, whatever_chose_before_the_budget_holds_and_what_is_hot_stays) {
  const auto session = new_session(96);
  for (const PolicyEntry& entry : policies()) {
    if (entry.name == "none") continue;  // a full budget ends the turn
    const std::int32_t n_hot = session->hot().n_hot_frames();
    ASSERT_TRUE(engine_->set_policy(*session, policy(entry.name)).ok());
    EXPECT_EQ(session->hot().n_hot_frames(), n_hot) << entry.name;
    EXPECT_EQ(session->policy().name(), entry.name);
    say_within_budget(*session, entry.name);
    say_within_budget(*session, kLongText);
  }
  ASSERT_TRUE(engine_->set_policy(*session, nullptr).ok());
  EXPECT_EQ(session->policy().name(), "recency") << "the engine's";
}

TEST_F(PolicyChange, what_was_noted_stays_where_the_next_asks_for_the_same_and_goes_where_not) {
  const auto session = open_session({.policy = policy("snapkv:window=16")});
  say(*session, kLongText);
  const std::size_t n_noted = session->image().attention.entries.size();
  ASSERT_GT(n_noted, 0U);
  ASSERT_TRUE(engine_->set_policy(*session, policy("adakv:window=16")).ok());
  EXPECT_EQ(session->image().attention.entries.size(), n_noted);
  ASSERT_TRUE(engine_->set_policy(*session, policy("adakv:window=8")).ok());
  EXPECT_EQ(session->image().attention.entries.size(), 0U);
  say(*session, kLongText);
  EXPECT_GT(session->image().attention.entries.size(), 0U);
  ASSERT_TRUE(engine_->set_policy(*session, policy("knorm")).ok());
  EXPECT_EQ(session->image().attention.entries.size(), 0U);
  say(*session, kLongText);
  EXPECT_EQ(session->image().attention.entries.size(), 0U) << "nobody asks";
}

TEST_F(PolicyChange, shares_of_attention_of_another_policys_time_are_forgotten) {
  const auto session = open_session({.policy = policy("scored")});
  say(*session, kLongText);
  const auto shares = [&] {
    double sum = 0.0;
    for (const SessionImage::Block& block : session->image().blocks) sum += block.attention;
    return sum;
  };
  ASSERT_GT(shares(), 0.0);
  ASSERT_TRUE(engine_->set_policy(*session, policy("streaming")).ok());
  EXPECT_EQ(shares(), 0.0);
}

TEST_F(PolicyChange, evicted_blocks_come_back_as_they_were_under_another_policy) {
  const auto session = new_session();
  say(*session, "quagga " + kLongText);
  const auto before = evict_all(*session);
  ASSERT_TRUE(engine_->set_policy(*session, policy("h2o")).ok());
  std::vector<BlockIndex> blocks;
  for (std::int32_t b = 0; b + 1 < session->n_blocks(); ++b) blocks.emplace_back(b);
  ASSERT_TRUE(engine_->recall(*session, blocks).ok());
  for (const BlockIndex block : blocks) EXPECT_EQ(engine_->read_block(*session, block), before[block.index()]);
}

}  // namespace
}  // namespace ebb
