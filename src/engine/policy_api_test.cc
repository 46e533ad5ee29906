// The public areas scheme as a user of the library sees it: public headers only.
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ebb/policy.h"

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace ebb::api;

constexpr AreasOptions kSmall{
    .start_tokens = 4, .recent_tokens = 4, .max_tokens = 16, .aggregation = Aggregation::kSum, .n_window_queries = 0};

std::vector<std::vector<float>> scores_of(std::size_t n_tokens) { return {std::vector<float>(n_tokens, 1.0F)}; }

TEST(PolicyApi, names_victims_pass_by_pass) {
  Areas areas = std::move(Areas::make(kSmall, {.block_size = 4}, 23).value());
  EXPECT_EQ(areas.max_tokens_after_eviction(), 19);
  EXPECT_EQ(areas.count_queries(23), 23);
  ASSERT_TRUE(areas.register_scores(23, scores_of(23)).ok());
  EXPECT_TRUE(areas.evict().value()[0].victims.empty());
  Areas draft = std::move(areas.copy().value());
  ASSERT_TRUE(areas.register_scores(1, scores_of(24)).ok());
  EXPECT_THAT(areas.evict().value()[0].victims, ElementsAre(1, 2));
  EXPECT_EQ(areas.n_cached(), 16);
  EXPECT_EQ(areas.n_processed(), 24);
  EXPECT_EQ(draft.n_cached(), 23) << "the copy did not move";
  ASSERT_TRUE(areas.reset(24).ok());
  EXPECT_EQ(areas.n_cached(), 0);
}

TEST(PolicyApi, takes_diversity_when_it_asked_for_it) {
  AreasOptions options = kSmall;
  options.aggregation = Aggregation::kAdaptiveRkv;
  Areas areas = std::move(Areas::make(options, {.block_size = 4}, 19).value());
  ASSERT_TRUE(areas.register_scores(19, scores_of(19)).ok());
  ASSERT_EQ(areas.wanted_diversity(1), 12);
  ASSERT_TRUE(areas.register_scores(1, scores_of(20)).ok());
  const std::vector<float> diversity(3 * 12);
  ASSERT_TRUE(areas.register_diversity(0, diversity).ok());
  EXPECT_FALSE(areas.register_diversity(0, diversity).ok());
  EXPECT_FALSE(areas.register_diversity(1, diversity).ok());
  EXPECT_THAT(areas.evict().value()[0].victims, ElementsAre(3));
}

TEST(PolicyApi, says_why_it_refuses) {
  EXPECT_THAT(Areas::make({.start_tokens = 0}, {}, 1).error().message, HasSubstr("start_size is 0"));
  Areas areas =
      std::move(Areas::make({.start_tokens = 6, .recent_tokens = 4, .max_tokens = 16}, {.block_size = 4}, 9).value());
  EXPECT_THAT(areas.register_scores(9, scores_of(9)).error().message, HasSubstr("no multiple of the block size 4"));
  AreasOptions options = kSmall;
  options.crush.anchor = static_cast<CrushAnchor>(99);
  Areas other = std::move(Areas::make(options, {.block_size = 4}, 9).value());
  EXPECT_THAT(other.register_scores(9, scores_of(9)).error().message, HasSubstr("number 99"));
}

TEST(PolicyApi, rescues_blocks_and_refuses_those_that_there_are_none_of) {
  std::mt19937 random(0);
  const std::vector<double> sums = {9, 9, 0, 0, 9, 9, 0, 0};
  const auto rescue = [&](const std::vector<std::int32_t>& victims, std::span<const double> of) {
    return rescue_blocks(of, 2, victims, {.budget_blocks = 1, .anchor = CrushAnchor::kOnes}, random);
  };
  EXPECT_THAT(rescue({1, 2, 3}, sums).value(), ElementsAre(2));
  for (const std::vector<std::int32_t>& wrong : {std::vector{-1}, {4}, {2, 2}, {2, 1}}) {
    EXPECT_FALSE(rescue(wrong, sums).ok());
  }
  EXPECT_FALSE(rescue({1}, std::span(sums).first(3)).ok());
  EXPECT_FALSE(rescue({0}, std::vector<double>{1.0, std::numeric_limits<double>::quiet_NaN()}).ok());
}

TEST(PolicyApi, says_how_far_keys_turn_back_and_by_what) {
  const std::vector<std::int32_t> victims = {1};
  const auto shifts = find_shifts(3, victims, 16, 2);
  ASSERT_EQ(shifts.value().size(), 1U);
  EXPECT_EQ(shifts.value()[0].n_tokens, 16);
  EXPECT_FALSE(find_shifts(3, victims, 16, 1).ok());
  EXPECT_EQ(make_rotation_table(2, 16, 8).value().cos.size(), 8U);
  EXPECT_FALSE(make_rotation_table(2, 16, 8, 0.0).ok());
}

}  // namespace
