#include "bench/document_arms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names_of(const std::vector<DocumentArm>& arms) {
  std::vector<std::string> names;
  for (const DocumentArm& arm : arms) names.push_back(arm.name());
  return names;
}

TEST(DocumentArms, every_policy_in_every_way) {
  const std::vector<std::string> policies = {"h2o", "snapkv"};
  const std::vector<std::string> arms = {"alone", "recall", "oracle", "breadcrumb", "discard"};
  const std::vector<std::string> selectors = {"recall", "lexical+digest"};
  EXPECT_THAT(names_of(*make_document_arms(policies, arms, selectors)),
              ElementsAre("h2o", "h2o, recall", "h2o, lexical+digest", "h2o, oracle", "h2o, breadcrumb", "h2o, discard",
                          "snapkv", "snapkv, recall", "snapkv, lexical+digest", "snapkv, oracle", "snapkv, breadcrumb",
                          "snapkv, discard"));
}

TEST(DocumentArms, nothing_stays_where_remains_says_so) {
  const std::vector<std::string> policies = {"h2o"};
  const std::vector<std::string> arms = {"breadcrumb", "discard"};
  const std::vector<DocumentArm> made = *make_document_arms(policies, arms, {});
  EXPECT_EQ(made[0].remains, Remains::kTokens);
  EXPECT_EQ(made[1].remains, Remains::kNothing);
}

TEST(DocumentArms, arms_and_selectors_that_there_are_not_are_refused) {
  const std::vector<std::string> policies = {"h2o"};
  const std::vector<std::string> unknown = {"nobody"};
  const std::vector<std::string> recall = {"recall"};
  EXPECT_EQ(make_document_arms(policies, unknown, recall).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(make_document_arms(policies, recall, unknown).status().code(), Code::kNotFound);
}

TEST(DocumentArms, what_may_be_hot_is_a_part_or_so_many_tokens) {
  EXPECT_EQ(HotPart{.part = 4}.name(), "1/4");
  EXPECT_EQ((HotPart{.part = 0, .n_tokens = 512}.name()), "512");
  EXPECT_TRUE(HotPart().is_all());
  EXPECT_FALSE((HotPart{.part = 1, .n_tokens = 512}.is_all()));
}

}  // namespace
}  // namespace ebb
