#include "policy/areas_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> ones(std::size_t n) { return std::vector<float>(n, 1.0F); }

TEST(CountQueries, counts_the_last_queries_of_the_prompt_and_all_later_ones) {
  const auto count = [](std::int32_t n_processed, std::int32_t n_scheduled) {
    return count_queries({.n_prompt = 100, .n_processed = n_processed, .n_scheduled = n_scheduled}, 8);
  };
  EXPECT_EQ(count(0, 92), 0) << "the window begins at 92";
  EXPECT_EQ(count(0, 93), 1);
  EXPECT_EQ(count(0, 100), 8);
  EXPECT_EQ(count(92, 8), 8);
  EXPECT_EQ(count(93, 7), 7);
  EXPECT_EQ(count(100, 1), 1);
  EXPECT_EQ(count_queries({.n_prompt = 100, .n_processed = 0, .n_scheduled = 60}, 0), 60) << "no window: all of them";
  EXPECT_EQ(count_queries({.n_prompt = 5, .n_processed = 0, .n_scheduled = 5}, 8), 5) << "a prompt shorter than it";
  EXPECT_EQ(count_queries({.n_prompt = 5, .n_processed = 5, .n_scheduled = 1}, 8), 1);
}

TEST(PoolAhead, looks_six_tokens_ahead_and_ends_with_the_vector) {
  const std::vector<double> scores = {0, 0, 9, 0, 0, 0, 0, 0, 0, 5, 1};
  EXPECT_THAT(pool_ahead(scores), ElementsAre(9, 9, 9, 5, 5, 5, 5, 5, 5, 5, 1));
}

TEST(LayerScores, adds_pooled_sums_and_counts_every_query_without_a_window) {
  LayerScores scores({.aggregation = Aggregation::kSum, .n_window_queries = 0});
  scores.add(std::vector<float>{1, 0, 2}, {.n_in_pass = 3});
  EXPECT_THAT(scores.sums(), ElementsAre(2, 2, 2));
  EXPECT_THAT(scores.counters(), ElementsAre(3, 2, 1));
  scores.add(std::vector<float>{0, 0, 0, 4, 1}, {.n_in_pass = 2});
  EXPECT_THAT(scores.sums(), ElementsAre(6, 6, 6, 4, 1));
  EXPECT_THAT(scores.counters(), ElementsAre(5, 4, 3, 2, 1));
  scores.add(std::vector<float>{1, 1, 1, 1, 1}, {.n_in_pass = 1});
  EXPECT_THAT(scores.sums(), ElementsAre(7, 7, 7, 5, 2));
  EXPECT_THAT(scores.counters(), ElementsAre(5, 4, 3, 2, 1)) << "no new token changes no counter";
}

TEST(LayerScores, starts_counters_at_the_window_so_that_prompt_and_generated_tokens_compare) {
  LayerScores scores({.n_window_queries = 3});
  scores.add(ones(6), {.n_window = 3, .n_in_pass = 3, .n_total = 3});
  EXPECT_THAT(scores.counters(), ElementsAre(3, 3, 3, 3, 2, 1));
  scores.add(ones(7), {.n_window = 3, .n_in_pass = 1, .n_total = 3});
  EXPECT_THAT(scores.counters(), ElementsAre(4, 4, 4, 4, 3, 2, 1));
  EXPECT_THAT(scores.sums(), ElementsAre(2, 2, 2, 2, 2, 2, 1));
}

TEST(LayerScores, fills_the_window_over_chunks_as_if_they_were_one) {
  for (const bool upstream : {false, true}) {
    LayerScores scores({.n_window_queries = 5, .upstream = upstream});
    scores.add(ones(6), {.n_window = 5, .n_in_pass = 2, .n_total = 2});
    EXPECT_THAT(scores.counters(), ElementsAre(2, 2, 2, 2, 2, 1));
    scores.add(ones(7), {.n_window = 5, .n_in_pass = 1, .n_total = 3});
    EXPECT_THAT(scores.counters(), ElementsAre(3, 3, 3, 3, 3, 2, 1));
    scores.add(ones(9), {.n_window = 5, .n_in_pass = 2, .n_total = 5});
    EXPECT_THAT(scores.counters(), ElementsAre(5, 5, 5, 5, 5, 4, 3, 2, 1));
  }
}

TEST(LayerScores, clamps_a_window_that_is_longer_than_what_is_tracked_and_upstream_refuses_it) {
  const CountedQueries first{.n_window = 8, .n_in_pass = 8, .n_total = 8};
  LayerScores clean(AreasConfig{});
  ASSERT_TRUE(clean.check(3, first).ok());
  clean.add(ones(3), first);
  EXPECT_THAT(clean.counters(), ElementsAre(3, 2, 1));
  const LayerScores upstream({.upstream = true});
  EXPECT_THAT(upstream.check(3, first).message(), HasSubstr("3 tokens are tracked and 8 queries of the window"));
  EXPECT_TRUE(upstream.check(8, first).ok());
  EXPECT_TRUE(LayerScores({.aggregation = Aggregation::kSum, .upstream = true}).check(3, first).ok())
      << "sums need no counters";

  LayerScores later({.upstream = true});
  later.add(ones(1), {.n_window = 8, .n_in_pass = 1, .n_total = 5});
  EXPECT_FALSE(later.check(2, {.n_window = 8, .n_in_pass = 1, .n_total = 6}).ok());
}

TEST(LayerScores, refuses_a_vector_shorter_than_what_is_tracked) {
  LayerScores scores(AreasConfig{.n_window_queries = 0});
  scores.add(ones(4), {.n_in_pass = 4});
  EXPECT_THAT(scores.check(3, {.n_in_pass = 1}).message(), HasSubstr("3 scores behind the start area, and 4 tokens"));
  EXPECT_TRUE(scores.check(4, {.n_in_pass = 1}).ok());
}

TEST(LayerScores, values_a_block_by_the_sum_of_its_tokens_ratios) {
  for (const bool is_norm : {false, true}) {
    LayerScores scores({.aggregation = is_norm ? Aggregation::kNormSum : Aggregation::kSum, .n_window_queries = 0});
    scores.add(std::vector<float>{6, 6, 6, 6}, {.n_in_pass = 4});
    const std::vector<double> values = scores.block_values({.begin = 3, .end = 5}, 3, 2);
    if (is_norm) {
      EXPECT_THAT(values, ElementsAre(6.0 / 4 + 6.0 / 3, 6.0 / 2 + 6.0 / 1));
    } else {
      EXPECT_THAT(values, ElementsAre(12, 12));
    }
  }
}

TEST(LayerScores, forgets_the_tokens_of_blocks_that_left_and_keeps_the_order_of_the_others) {
  LayerScores scores({.aggregation = Aggregation::kSum, .n_window_queries = 0});
  scores.add(std::vector<float>{9, 8, 7, 6, 5, 4, 3}, {.n_in_pass = 7});
  scores.remove(std::vector<std::int32_t>{2, 4}, 2, 2);
  EXPECT_THAT(scores.sums(), ElementsAre(7, 6, 3));
  EXPECT_THAT(scores.counters(), ElementsAre(5, 4, 1));
}

TEST(LayerScores, takes_the_pooled_mean_of_the_last_passes_with_adaptive_rkv) {
  LayerScores scores({.aggregation = Aggregation::kAdaptiveRkv, .n_window_queries = 0, .adaptive = {.n_passes = 2}});
  scores.add(std::vector<float>{0, 4}, {.n_in_pass = 2});
  EXPECT_THAT(scores.sums(), ElementsAre(0, 4)) << "the very first vector is not pooled";
  scores.add(std::vector<float>{2, 0, 2}, {.n_in_pass = 1});
  EXPECT_THAT(scores.sums(), ElementsAre(2, 2, 1)) << "means 1, 2, 1: a pass that had not seen a token counts as 0";
  scores.add(std::vector<float>{0, 0, 0, 6}, {.n_in_pass = 1});
  EXPECT_THAT(scores.sums(), ElementsAre(3, 3, 3, 3)) << "means 1, 0, 1, 3: the first pass is out of the window";
  scores.remove(std::vector<std::int32_t>{1}, 0, 1);
  EXPECT_THAT(scores.sums(), ElementsAre(3, 3, 3)) << "values stay until the next pass";
  scores.add(std::vector<float>{0, 5, 0, 0}, {.n_in_pass = 1});
  EXPECT_THAT(scores.sums(), ElementsAre(5, 5, 0, 0)) << "which stands alone after an eviction";
}

}  // namespace
}  // namespace ebb
