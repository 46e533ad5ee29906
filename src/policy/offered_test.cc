#include "policy/offered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal(const OfferedPolicies& offered, std::string_view spec) {
  const auto policy = offered.make(spec);
  EXPECT_FALSE(policy.ok()) << spec;
  EXPECT_EQ(policy.status().code(), Code::kInvalidArgument);
  return policy.status().message();
}

TEST(OfferedPolicies, are_those_that_give_way_unless_the_operator_says_otherwise) {
  const OfferedPolicies offered;
  EXPECT_EQ(offered.make("snapkv:window=16").value()->name(), "snapkv");
  EXPECT_EQ(offered.make("1").value()->spec(), "streaming");
  EXPECT_EQ(offered.make("2").value()->spec(), "scored:recent=0.25");
  EXPECT_FALSE(OfferedPolicies::parse("tova")->make("2").ok());
  EXPECT_FALSE(offered.has("none")) << "a session that lets nothing go keeps more than its share";
  EXPECT_TRUE(OfferedPolicies::parse("all")->has("none"));
  EXPECT_TRUE(OfferedPolicies::parse("tova,none")->has("none"));
  EXPECT_FALSE(OfferedPolicies::parse("tova,none")->has("snapkv"));
  for (const PolicyEntry& entry : policies()) {
    EXPECT_EQ(OfferedPolicies::parse("open")->has(entry.name), entry.is_open) << entry.name;
    EXPECT_FALSE(OfferedPolicies::parse("own")->has(entry.name)) << entry.name;
  }
}

TEST(OfferedPolicies, a_list_with_what_is_no_policy_is_refused_with_those_that_there_are) {
  for (const char* list : {"", "tova,", "tova,,snapkv", "snapkv:window=16", "tova snapkv", "all,tova"}) {
    const auto offered = OfferedPolicies::parse(list);
    ASSERT_FALSE(offered.ok()) << list;
    EXPECT_THAT(offered.status().message(), AllOf(HasSubstr("streaming, "), HasSubstr(", none"))) << list;
  }
}

TEST(OfferedPolicies, what_is_not_offered_is_refused_with_what_is) {
  const OfferedPolicies offered = OfferedPolicies::parse("tova,adakv").value();
  EXPECT_THAT(refusal(offered, "snapkv"),
              HasSubstr("'snapkv' is no policy that may be chosen here; there are tova, adakv"));
  EXPECT_THAT(refusal(offered, "adakv:beta=2"), HasSubstr("window (1 to 512, default 32)"));
  EXPECT_THAT(refusal(offered, "tova:"), HasSubstr("no parameter behind the colon"));
  EXPECT_THAT(refusal(OfferedPolicies::parse("own").value(), "tova"), HasSubstr("leave it out"));
}

TEST(OfferedPolicies, windows_by_slice_take_memory_and_are_offered_by_name_alone) {
  for (const char* spec : {"snapkv:slice=1", "adakv:slice=8,window=512", "pyramidkv:slice=4"}) {
    EXPECT_THAT(refusal({}, spec), HasSubstr("notes a window by slice")) << spec;
    EXPECT_TRUE(OfferedPolicies::parse("all")->make(spec).ok()) << spec;
    EXPECT_TRUE(OfferedPolicies::parse("snapkv,adakv,pyramidkv")->make(spec).ok()) << spec;
  }
  EXPECT_TRUE(OfferedPolicies().make("snapkv").ok());
  EXPECT_TRUE(OfferedPolicies().make("areas").ok()) << "which has no window";
}

TEST(OfferedPolicies, what_compares_blocks_takes_time_and_is_offered_by_name_alone) {
  EXPECT_THAT(refusal({}, "areas:norm=2,slice=0"), HasSubstr("compares blocks with each other"));
  EXPECT_TRUE(OfferedPolicies::parse("areas")->make("areas:norm=2").ok());
  EXPECT_TRUE(OfferedPolicies::parse("all")->make("areas:norm=2,slice=0").ok());
  for (const PolicyEntry& entry : policies()) {
    const bool compares = entry.make(ParameterValues(entry.parameters))->compares_blocks();
    EXPECT_FALSE(compares && entry.is_open) << entry.name;
  }
}

TEST(OfferedPolicies, what_is_too_long_is_neither_read_nor_repeated) {
  const std::string name(OfferedPolicies::kMostBytes + 1, 'x');
  EXPECT_THAT(refusal({}, name), AllOf(HasSubstr("513 bytes"), Not(HasSubstr("xxx"))));
  EXPECT_LT(refusal({}, std::string(OfferedPolicies::kMostBytes, 'x')).size(), 400U);
}

}  // namespace
}  // namespace ebb
