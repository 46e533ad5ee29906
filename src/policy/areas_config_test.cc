#include "policy/areas_config.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(AreasConfig, has_the_originals_defaults) {
  const AreasConfig config;
  EXPECT_TRUE(config.validate().ok());
  EXPECT_TRUE(config.check_first_use(32, 1).ok());
  EXPECT_EQ(config.evictable_tokens(), 512);
  EXPECT_EQ(config.max_tokens_after_eviction(32), 703);
  EXPECT_EQ(config.aggregation, Aggregation::kNormSum);
  EXPECT_EQ(config.n_window_queries, 8);
}

TEST(AreasConfig, refuses_an_area_of_nothing) {
  for (const std::int32_t n :
       {0, -1, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()}) {
    EXPECT_THAT(AreasConfig{.start_tokens = n}.validate().message(), HasSubstr("start_size is"));
    EXPECT_THAT(AreasConfig{.recent_tokens = n}.validate().message(), HasSubstr("recent_size is"));
    EXPECT_THAT(AreasConfig{.max_tokens = n}.validate().message(), HasSubstr("max_cache_size is"));
  }
}

TEST(AreasConfig, refuses_a_limit_that_leaves_nothing_to_choose_from) {
  EXPECT_THAT((AreasConfig{.start_tokens = 32, .recent_tokens = 128, .max_tokens = 160}.validate().message()),
              HasSubstr("start_size + recent_size is 160: it must be larger"));
  EXPECT_TRUE((AreasConfig{.start_tokens = 32, .recent_tokens = 128, .max_tokens = 161}.validate().ok()));
}

TEST(AreasConfig, refuses_numbers_that_mean_nothing) {
  EXPECT_FALSE(AreasConfig{.n_window_queries = -1}.validate().ok());
  EXPECT_FALSE(AreasConfig{.crush = {.budget_blocks = -1}}.validate().ok());
  EXPECT_FALSE(AreasConfig{.adaptive = {.attention_mass = std::nan("")}}.validate().ok());
  EXPECT_FALSE(AreasConfig{.adaptive = {.attention_mass = 1.5}}.validate().ok());
  EXPECT_FALSE(AreasConfig{.adaptive = {.n_passes = 0}}.validate().ok());
  EXPECT_FALSE(AreasConfig{.aggregation = static_cast<Aggregation>(9)}.validate().ok());
}

TEST(AreasConfig, refuses_sizes_that_are_no_whole_blocks_only_when_blocks_are_known) {
  const AreasConfig config{.start_tokens = 32, .recent_tokens = 40, .max_tokens = 160};
  EXPECT_TRUE(config.validate().ok());
  EXPECT_TRUE(config.check_first_use(8, 1).ok());
  EXPECT_THAT(config.check_first_use(16, 1).message(),
              HasSubstr("recent_size is 40, which is no multiple of the block size 16"));
  EXPECT_THAT(config.check_first_use(64, 1).message(), HasSubstr("start_size is 32"));
  EXPECT_THAT(
      (AreasConfig{.start_tokens = 32, .recent_tokens = 32, .max_tokens = 100}.check_first_use(32, 1).message()),
      HasSubstr("max_cache_size is 100"));
}

TEST(AreasConfig, refuses_a_model_without_layers_and_anchors_that_there_are_none_of) {
  EXPECT_THAT(AreasConfig{}.check_first_use(32, 0).message(), HasSubstr("0 layers"));
  EXPECT_THAT(AreasConfig{}.check_first_use(0, 1).message(), HasSubstr("blocks of 0 tokens"));
  EXPECT_THAT((AreasConfig{.crush = {.anchor = static_cast<CrushAnchor>(7)}}.check_first_use(32, 1).message()),
              HasSubstr("anchor_point_mode is number 7"));
}

TEST(AreasConfig, takes_a_rescue_budget_only_within_the_limit_unless_upstream) {
  AreasConfig config{.crush = {.budget_blocks = 16}};
  EXPECT_TRUE(config.check_first_use(32, 1).ok());
  config.crush.budget_blocks = 17;
  EXPECT_THAT(config.check_first_use(32, 1).message(), HasSubstr("give at most 16"));
  config.upstream = true;
  EXPECT_TRUE(config.check_first_use(32, 1).ok());
}

TEST(AreasConfig, says_what_has_no_effect) {
  EXPECT_THAT((AreasConfig{.crush = {.budget_blocks = 1}}.notes()), IsEmpty());
  EXPECT_THAT((AreasConfig{.aggregation = Aggregation::kAdaptiveRkv, .crush = {.budget_blocks = 1}}.notes()),
              ElementsAre(HasSubstr("no effect with ADAPTIVE_RKV")));
}

TEST(AreasConfig, finds_modes_and_anchors_by_name_the_older_one_too) {
  for (const char* name : {"SUM", "NORM_SUM", "ADAPTIVE_RKV"})
    EXPECT_EQ(aggregation_name(*find_aggregation(name)), name);
  for (const char* name : {"RANDOM", "ZEROS", "ONES", "MEAN", "ALTERNATING"}) {
    EXPECT_EQ(crush_anchor_name(*find_crush_anchor(name)), name);
  }
  EXPECT_EQ(*find_crush_anchor("ALTERNATE"), CrushAnchor::kAlternating);
  EXPECT_THAT(find_crush_anchor("random").status().message(),
              HasSubstr("there are RANDOM, ZEROS, ONES, MEAN, ALTERNATING"));
  EXPECT_EQ(find_aggregation("").status().code(), Code::kNotFound);
}

TEST(AreasConfig, gives_the_range_of_the_description_s_example) {
  const AreasConfig config{.start_tokens = 64, .recent_tokens = 64, .max_tokens = 512};
  EXPECT_EQ(find_evictable(config, 16, 1001), (BlockRange{4, 58}));
  EXPECT_EQ(find_evictable(config, 16, 528), (BlockRange{4, 29}));
  EXPECT_EQ(find_evictable(config, 16, 527).n_blocks(), 0) << "below the threshold the range is reported empty";
}

}  // namespace
}  // namespace ebb
