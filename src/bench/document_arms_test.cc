#include "bench/document_arms.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/all.h"

namespace ebb {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names_of(const std::vector<DocumentArm>& arms) {
  std::vector<std::string> names;
  for (const DocumentArm& arm : arms) names.push_back(arm.name());
  return names;
}

TEST(DocumentArms, every_policy_in_every_way) {
  EXPECT_THAT(names_of(*make_document_arms({.policies = {"h2o", "snapkv"},
                                            .arms = {"alone", "recall", "oracle", "breadcrumb", "discard"},
                                            .selectors = {"recall", "lexical+digest"}})),
              ElementsAre("h2o", "h2o, recall", "h2o, lexical+digest", "h2o, oracle", "h2o, breadcrumb", "h2o, discard",
                          "snapkv", "snapkv, recall", "snapkv, lexical+digest", "snapkv, oracle", "snapkv, breadcrumb",
                          "snapkv, discard"));
}

TEST(DocumentArms, what_comes_back_may_be_put_elsewhere_computed_again_or_lie_on_a_disk) {
  const std::vector<DocumentArm> arms =
      *make_document_arms({.policies = {"h2o"},
                           .arms = {"recall", "oracle", "recompute", "disk"},
                           .places = {RecallPlace::kOriginal, RecallPlace::kTail, RecallPlace::kCompacted}});
  EXPECT_THAT(names_of(arms),
              ElementsAre("h2o, recall", "h2o, recall, tail", "h2o, recall, compacted", "h2o, oracle",
                          "h2o, oracle, tail", "h2o, oracle, compacted", "h2o, recompute", "h2o, recall, disk"));
  EXPECT_EQ(arms[6].remains, Remains::kTokens);
  EXPECT_EQ(arms[7].n_ram_blocks, 8);
}

TEST(DocumentArms, what_comes_back_may_have_its_first_tokens_computed_again) {
  const std::vector<DocumentArm> arms = *make_document_arms({.policies = {"h2o"},
                                                             .arms = {"alone", "recall", "oracle"},
                                                             .places = {RecallPlace::kOriginal, RecallPlace::kTail},
                                                             .renewed = {0, 8}});
  EXPECT_THAT(names_of(arms), ElementsAre("h2o", "h2o, recall", "h2o, recall, 8 renewed", "h2o, recall, tail",
                                          "h2o, recall, tail, 8 renewed", "h2o, oracle", "h2o, oracle, 8 renewed",
                                          "h2o, oracle, tail", "h2o, oracle, tail, 8 renewed"));
}

TEST(DocumentArms, nothing_stays_where_remains_says_so) {
  const std::vector<DocumentArm> made = *make_document_arms({.policies = {"h2o"}, .arms = {"breadcrumb", "discard"}});
  EXPECT_EQ(made[0].remains, Remains::kTokens);
  EXPECT_EQ(made[1].remains, Remains::kNothing);
}

TEST(DocumentArms, arms_and_selectors_that_there_are_not_are_refused) {
  EXPECT_EQ(make_document_arms({.policies = {"h2o"}, .arms = {"nobody"}}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(make_document_arms({.policies = {"h2o"}, .arms = {"recall"}, .selectors = {"nobody"}}).status().code(),
            Code::kNotFound);
}

TEST(DocumentArms, places_have_the_names_of_ebb_run) {
  for (const RecallPlace place : {RecallPlace::kOriginal, RecallPlace::kCompacted, RecallPlace::kTail}) {
    EXPECT_EQ(find_recall_place(name_of(place)), place);
  }
  EXPECT_FALSE(find_recall_place("middle").has_value());
}

bool all_differ(std::vector<std::string> names) {
  std::ranges::sort(names);
  return std::ranges::adjacent_find(names) == names.end();
}

// Each of them can be run, and one of them is what the others are held against.
TEST(DocumentArms, lists_are_of_policies_that_there_are_and_have_the_arm_they_are_held_against) {
  for (const DocumentArmList& list : {baselines(), ablation()}) {
    EXPECT_THAT(names_of(list.arms), ::testing::Contains(list.against));
    EXPECT_TRUE(all_differ(names_of(list.arms)));
    for (const DocumentArm& arm : list.arms) EXPECT_TRUE(make_policy(arm.policy).ok()) << arm.name();
  }
}

TEST(DocumentArms, baselines_are_those_of_the_papers_and_ours_by_each_selector) {
  const std::vector<std::string> names = names_of(baselines().arms);
  for (const std::string name :
       {"recency", "streaming", "h2o", "snapkv", "discard", "breadcrumb", "evoke", "infllm", "arkvale", "quest"}) {
    EXPECT_THAT(names, ::testing::Contains(name));
  }
  for (const std::string way : {"recall", "lexical", "digest", "oracle"}) {
    EXPECT_THAT(names, ::testing::Contains(std::string(kDefaultPolicy) + ", " + way));
  }
}

TEST(DocumentArms, baselines_go_by_meaning_where_there_is_a_model_for_it_and_only_there) {
  for (const DocumentArm& arm : baselines().arms) EXPECT_FALSE(arm.selectors.asks_meanings()) << arm.name();
  std::vector<std::string> by_meaning;
  for (const DocumentArm& arm : baselines(true).arms) {
    if (arm.selectors.asks_meanings()) by_meaning.push_back(arm.name());
  }
  EXPECT_THAT(by_meaning, ::testing::Contains(std::string(kDefaultPolicy) + ", embedding"));
  EXPECT_THAT(by_meaning, ::testing::Contains("evoke"));
}

TEST(DocumentArms, an_ablation_has_every_combination_once_and_calls_it_by_what_it_changes) {
  std::vector<std::vector<Factor>> combinations;
  for (const DocumentArm& arm : ablation().arms) {
    if (!arm.factors.empty()) combinations.push_back(arm.factors);
    EXPECT_EQ(arm.is_late, arm.name().find("behind the question") != std::string::npos) << arm.name();
  }
  EXPECT_EQ(combinations.size(), 36U);
  std::ranges::sort(combinations);
  EXPECT_EQ(std::ranges::adjacent_find(combinations), combinations.end());
}

TEST(DocumentArms, what_may_be_hot_is_a_part_or_so_many_tokens) {
  EXPECT_EQ(HotPart{.part = 4}.name(), "1/4");
  EXPECT_EQ((HotPart{.part = 0, .n_tokens = 512}.name()), "512");
  EXPECT_TRUE(HotPart().is_all());
  EXPECT_FALSE((HotPart{.part = 1, .n_tokens = 512}.is_all()));
}

}  // namespace
}  // namespace ebb
