#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/choose.h"
#include "policy/policy.h"
#include "policy/policy_test.h"

namespace ebb {
namespace {

using policy_test::blocks;
using policy_test::policy;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<double> score(const Policy& policy, const Evidence& evidence) {
  return policy.score(evidence, evidence.scopes.front());
}

std::vector<BlockIndex> order(const Policy& policy, const Evidence& evidence) {
  std::vector<BlockIndex> blocks;
  const auto n = static_cast<std::int32_t>(evidence.blocks.size());
  for (const Victim& victim : choose_victims(policy, evidence, n, n)) blocks.push_back(victim.block);
  return blocks;
}

TEST(Policies, are_found_by_name_and_an_unknown_one_is_told_what_there_is) {
  for (const PolicyEntry& entry : policies()) EXPECT_EQ(policy(entry.name)->name(), entry.name);
  EXPECT_THAT(make_policy("lru").status().message(), HasSubstr("streaming, scored, evoke, tova, h2o, snapkv"));
  EXPECT_EQ(make_policy("lru").status().code(), Code::kNotFound);
}

TEST(Policies, take_parameters_and_say_which) {
  EXPECT_EQ(policy("snapkv:window=7,kernel=1")->asks().window, 7);
  EXPECT_EQ(policy("adakv:floor=0.25")->shares().floor, 0.25);
  EXPECT_EQ(policy("h2o:recent=0.125,lifetime=1")->name(), "h2o");
  for (const auto* spec : {"snapkv:windows=7", "snapkv:window", "snapkv:=7", "snapkv:,", "snapkv:window=7,"}) {
    EXPECT_THAT(make_policy(spec).status().message(), HasSubstr("window (1 to 512, default 32), kernel")) << spec;
  }
  for (const auto* spec : {"snapkv:window=0", "snapkv:window=1.5", "snapkv:window=nan",
                           "snapkv:window=", "snapkv:window=1e9", "snapkv:window=7 "}) {
    EXPECT_THAT(make_policy(spec).status().message(), HasSubstr("give a whole number from 1 to 512")) << spec;
  }
  EXPECT_THAT(make_policy("snapkv:kernel=4").status().message(), HasSubstr("give an odd number from 1 to 127"));
  EXPECT_THAT(make_policy("snapkv:window=7,window=8").status().message(), HasSubstr("window is given twice"));
  EXPECT_THAT(make_policy("snapkv:").status().message(), HasSubstr("no parameter behind the colon"));
  EXPECT_LT(make_policy(std::string(100'000, 'x')).status().message().size(), 300U);
  EXPECT_THAT(make_policy("streaming:window=1").status().message(), HasSubstr("it takes none"));
}

TEST(Policies, every_one_gives_one_comparable_score_a_row_whatever_the_evidence) {
  std::mt19937_64 random(5);
  const auto unit = [&] { return static_cast<double>(random() % 1001) / 1000.0; };
  for (int round = 0; round < 200; ++round) {
    Evidence evidence = blocks(static_cast<std::int32_t>(random() % 20), 1, 1 + static_cast<int>(random() % 64));
    for (BlockEvidence& block : evidence.blocks) {
      block.source = static_cast<Source>(random() % 4);
      block.priority = unit() * 3;
      block.last_access = static_cast<std::int64_t>(random() % 100);
      if (random() % 2 == 0) block.attention = unit();
      if (random() % 2 == 0) block.focus = unit();
      block.recovery = unit();
    }
    ScopeEvidence& scope = evidence.scopes.front();
    policy_test::fill_columns(scope, unit);
    for (std::size_t i = 0; i < scope.rows.size(); ++i) scope.is_read[i] = random() % 4 != 0;
    for (const PolicyEntry& entry : policies()) {
      const std::vector<double> scores = score(*policy(entry.name), evidence);
      ASSERT_EQ(scores.size(), evidence.blocks.size()) << entry.name;
      for (const double score : scores) EXPECT_FALSE(std::isnan(score)) << entry.name;
    }
  }
}

TEST(Policies, none_lets_nothing_leave_and_says_so) {
  EXPECT_THAT(order(*policy("none"), blocks(5)), IsEmpty());
  for (const PolicyEntry& entry : policies())
    EXPECT_EQ(policy(entry.name)->lets_go(), entry.name != "none") << entry.name;
}

TEST(Policies, streaming_wants_sinks_and_recency_does_not) {
  EXPECT_TRUE(policy("streaming")->asks().sinks);
  EXPECT_FALSE(policy("recency")->asks().sinks);
}

TEST(Policies, scored_takes_the_least_recently_looked_at_and_the_older_of_equals) {
  Evidence evidence = blocks(4);
  const std::int64_t access[] = {9, 2, 7, 2};
  for (std::size_t i = 0; i < 4; ++i) evidence.blocks[i].last_access = access[i];
  EXPECT_THAT(order(*policy("scored"), evidence),
              ElementsAre(BlockIndex(1), BlockIndex(3), BlockIndex(2), BlockIndex(0)));
}

TEST(Policies, scored_keeps_a_floor_that_grows_with_the_session_where_it_is_told_to) {
  Evidence evidence = blocks(4);
  evidence.end = Position(256);
  const std::int64_t access[] = {9, 5, 1, 2};
  for (std::size_t i = 0; i < 4; ++i) evidence.blocks[i].last_access = access[i];
  EXPECT_THAT(order(*policy("scored"), evidence).front(), BlockIndex(2));
  EXPECT_THAT(order(*policy("scored:recent=0.25"), evidence),
              ElementsAre(BlockIndex(2), BlockIndex(1), BlockIndex(0), BlockIndex(3)))
      << "64 tokens are the last block";
  EXPECT_THAT(order(*policy("2"), evidence), order(*policy("scored:recent=0.25"), evidence)) << "tinfer's number";
  EXPECT_EQ(policy("1")->name(), "streaming");
  Evidence longer = blocks(100);
  EXPECT_THAT(order(*policy("2"), longer)[95], BlockIndex(95)) << "256 tokens at most: the last four blocks";
  longer.blocks[95].last_access = 1;
  EXPECT_THAT(order(*policy("2"), longer)[95], BlockIndex(95));
  longer.blocks[96].last_access = -1;
  EXPECT_THAT(order(*policy("2"), longer)[96], BlockIndex(96)) << "it is held by the floor";
}

TEST(Policies, evoke_gives_the_scores_of_its_definition) {
  Evidence evidence = blocks(2);
  evidence.blocks[0].source = Source::kTool;
  evidence.blocks[0].focus = 0.2;
  evidence.blocks[1].source = Source::kAssistant;
  const std::vector<double> scores = score(*policy("evoke:exponential=1"), evidence);
  EXPECT_NEAR(scores[0], 0.4 * std::exp(-0.64) + 0.6 * 0.6, 1e-12);
  EXPECT_NEAR(scores[1], 0.5 + 0.5 * (0.4 + 0.6 * 0.5), 1e-12);
}

TEST(Policies, evoke_tells_old_blocks_apart_where_the_original_cannot) {
  Evidence evidence = blocks(3, 1, 2000);
  evidence.end = Position(100'000);
  const std::vector<double> original = score(*policy("evoke:exponential=1"), evidence);
  EXPECT_EQ(original[0], original[1]);
  const std::vector<double> ours = score(*policy("evoke"), evidence);
  EXPECT_LT(ours[0], ours[1]);
  EXPECT_LT(ours[1], ours[2]);
}

TEST(Policies, evoke_keeps_what_is_talked_about_what_users_said_and_what_has_priority) {
  Evidence evidence = blocks(4);
  for (BlockEvidence& block : evidence.blocks) block.source = Source::kTool;
  evidence.blocks[0].focus = 0.9;
  evidence.blocks[1].source = Source::kUser;
  evidence.blocks[2].priority = 4.0;
  EXPECT_THAT(order(*policy("evoke:decay=0"), evidence),
              ElementsAre(BlockIndex(3), BlockIndex(1), BlockIndex(0), BlockIndex(2)));
}

TEST(Policies, h2o_keeps_the_heavy_and_the_newest_half) {
  Evidence evidence = blocks(4);
  evidence.scopes[0].total = {3.0, 9.0, 0.0, 1.0};
  evidence.scopes[0].n_queries = {1.0, 9.0, 1.0, 1.0};
  EXPECT_THAT(order(*policy("h2o"), evidence), ElementsAre(BlockIndex(0), BlockIndex(1), BlockIndex(2), BlockIndex(3)));
  EXPECT_THAT(order(*policy("h2o:recent=0"), evidence),
              ElementsAre(BlockIndex(2), BlockIndex(3), BlockIndex(0), BlockIndex(1)));
  EXPECT_THAT(order(*policy("h2o:recent=0,lifetime=1"), evidence),
              ElementsAre(BlockIndex(2), BlockIndex(1), BlockIndex(3), BlockIndex(0)))
      << "3, 1, 0, 1 a query";
}

TEST(Policies, snapkv_pools_tokens_with_their_neighbours_and_blocks_not) {
  Evidence evidence = blocks(5, 1, 1);
  evidence.end = Position(100);
  evidence.scopes[0].window_mean = {0.0, 0.0, 6.0, 0.0, 0.0};
  EXPECT_THAT(score(*policy("snapkv:kernel=3"), evidence), ElementsAre(0, 6, 6, 6, 0));
  EXPECT_THAT(score(*policy("snapkv:kernel=3,max=0"), evidence), ElementsAre(0, 2, 2, 2, 0));
  evidence.scopes[0].window_mean = {6.0, 0.0, 0.0, 0.0, 0.0};
  EXPECT_THAT(score(*policy("snapkv:kernel=3,max=0"), evidence), ElementsAre(2, 2, 0, 0, 0))
      << "zeros past the ends count";
  evidence.grain = 64;
  EXPECT_THAT(score(*policy("snapkv:kernel=5"), evidence), ElementsAre(6, 0, 0, 0, 0));
}

TEST(Policies, spec_says_what_makes_another_like_it) {
  EXPECT_EQ(policy("snapkv:max=1,kernel=7,window=16")->spec(), "snapkv:window=16,kernel=7");
  EXPECT_EQ(policy("snapkv:window=32")->spec(), "snapkv");
  EXPECT_EQ(policy("tova")->spec(), "tova");
  for (const char* spec : {"random:seed=123456789012345,heads=1", "evoke:recency=0.1,decay=1e-07", "adakv:floor=0"}) {
    EXPECT_EQ(policy(policy(spec)->spec())->spec(), policy(spec)->spec());
  }
}

TEST(Policies, random_has_one_order_for_each_seed) {
  const Evidence evidence = blocks(50);
  EXPECT_EQ(order(*policy("random:seed=1"), evidence), order(*policy("random:seed=1"), evidence));
  EXPECT_NE(order(*policy("random:seed=1"), evidence), order(*policy("random:seed=2"), evidence));
}

}  // namespace
}  // namespace ebb
