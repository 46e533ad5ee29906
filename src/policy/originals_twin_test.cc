#include "policy/originals_twin.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb::originals {
namespace {

using ::testing::DoubleEq;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pointwise;
using ::testing::SizeIs;

TEST(Originals, keep_the_highest_and_of_equals_the_newer) {
  EXPECT_THAT(keep_highest(Row{3, 1, 2, 1}, 2), ElementsAre(0, 2));
  EXPECT_THAT(keep_highest(Row{3, 1, 2, 1}, 3), ElementsAre(0, 2, 3)) << "of the two 1s token 1 leaves";
  EXPECT_THAT(keep_highest(Row{5, 5, 5}, 1), ElementsAre(2));
  EXPECT_THAT(keep_highest(Row{0.0, -0.0}, 1), ElementsAre(1)) << "zeros are equal";
  EXPECT_THAT(keep_highest(Row{1, 2}, 5), ElementsAre(0, 1));
  EXPECT_THAT(keep_highest(Row{1, 2}, 0), IsEmpty());
  EXPECT_THAT(keep_highest(Row{kAlways, 7, kAlways}, 2), ElementsAre(0, 2));
  EXPECT_THAT(keep_highest(Rows{{1, 2}, {4, 3}}, 1), ElementsAre(ElementsAre(1), ElementsAre(0)));
  EXPECT_THAT(keep_highest(Rows{{1, 2}, {4, 3}}, Counts{0, 2}), ElementsAre(IsEmpty(), ElementsAre(0, 1)));
}

TEST(Originals, rank_all_heads_together_by_score_then_token_then_head) {
  EXPECT_THAT(keep_highest_of_all({{9, 8, 1}, {2, 7, 0}}, 3), ElementsAre(ElementsAre(0, 1), ElementsAre(1)));
  // All equal: (token 0, head 0), (token 0, head 1), (token 1, head 0) leave.
  EXPECT_THAT(keep_highest_of_all({{5, 5}, {5, 5}}, 1), ElementsAre(IsEmpty(), ElementsAre(1)));
}

TEST(Originals, stop_at_scores_that_have_no_order) {
  EXPECT_DEATH(keep_highest(Row{1, NAN}, 1), "head 0 token 1 scores nan");
  EXPECT_DEATH(keep_highest(Row{1, -INFINITY}, 1), "scores -inf");
  EXPECT_DEATH(keep_highest(Row{kAlways, kAlways}, 1), "2 tokens always stay, in a budget of 1");
}

TEST(Originals, stop_at_inputs_that_are_no_numbers_or_of_unlike_shapes) {
  EXPECT_DEATH(check_heads({{{1, NAN}}}, 1), "head 0 has a nan");
  EXPECT_DEATH(check_heads({{{1}}, {{1}}, {{1}}}, 2), "3 heads, 2 KV heads");
  EXPECT_DEATH(check_heads({{{1, 2}, {1}}}, 1), "1 numbers");
}

TEST(Originals, protect_both_ends_also_where_they_meet) {
  EXPECT_THAT(protect({{1, 2, 3, 4}}, 1, 2), ElementsAre(ElementsAre(kAlways, 2, kAlways, kAlways)));
  EXPECT_THAT(protect({{1, 2}}, 1, 9), ElementsAre(Each(kAlways)));
}

TEST(Originals, recency_keeps_the_newest) { EXPECT_THAT(keep_highest(recency_scores(5), 2), ElementsAre(3, 4)); }

TEST(Originals, streaming_keeps_sinks_and_the_newest) {
  EXPECT_THAT(keep_highest(streaming_scores(8, 2), 5), ElementsAre(0, 1, 5, 6, 7));
  EXPECT_THAT(keep_highest(streaming_scores(3, 4), 4), ElementsAre(0, 1, 2));
  // 2 sinks + 3 recent. Appending 1 to 4 makes 5: all stay. Appending 2 to 5 makes 7 > 5: the last 3 - 2 = 1 stays.
  EXPECT_THAT(streaming_kept(4, 1, {.n_sinks = 2, .n_recent = 3}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(streaming_kept(5, 2, {.n_sinks = 2, .n_recent = 3}), ElementsAre(0, 1, 4));
  EXPECT_THAT(streaming_kept(5, 3, {.n_sinks = 2, .n_recent = 3}), ElementsAre(0, 1));
  EXPECT_DEATH(streaming_kept(5, 4, {.n_sinks = 2, .n_recent = 3}), "4 tokens at once, with 3 recent ones");
}

TEST(Originals, random_scores_belong_to_a_token_and_a_seed) {
  const Row few = random_scores(3, 7);
  const Row more = random_scores(1000, 7);
  EXPECT_EQ(few, Row(more.begin(), more.begin() + 3));
  EXPECT_NE(few, random_scores(3, 8));
  double sum = 0;
  for (const double score : more) {
    EXPECT_TRUE(score >= 0 && score < 1);
    sum += score;
  }
  EXPECT_NEAR(sum / 1000, 0.5, 0.05);
  EXPECT_THAT(keep_highest(more, 100), SizeIs(100));
}

TEST(Originals, average_pools_count_zeros_beyond_the_ends_and_maximum_pools_do_not_look_there) {
  // (0 + 3 + 6) / 3, (3 + 6 + 9) / 3, (6 + 9 + 0) / 3
  EXPECT_THAT(pool({3, 6, 9}, Pool::kAverage, 3), ElementsAre(3, 6, 5));
  EXPECT_THAT(pool({-3, -6, -9}, Pool::kMaximum, 3), ElementsAre(-3, -3, -6));
  EXPECT_THAT(pool({3, 6}, Pool::kAverage, 1), ElementsAre(3, 6));
  EXPECT_THAT(pool({5, 10}, Pool::kAverage, 5), ElementsAre(3, 3)) << "a kernel wider than the row: 15 / 5";
  EXPECT_DEATH(pool({1}, Pool::kAverage, 2), "a kernel of 2");
}

TEST(Originals, softmax_is_of_differences) {
  // e^ln 3 : e^0 = 3 : 1
  EXPECT_THAT(softmax({std::log(3.0), 0}), Pointwise(DoubleEq(), {0.75, 0.25}));
  EXPECT_THAT(softmax({1000, 1000}), ElementsAre(0.5, 0.5));
  EXPECT_THAT(softmax({}), IsEmpty());
}

TEST(Originals, a_group_of_query_heads_counts_as_its_mean) {
  EXPECT_THAT(mean_over_groups({{1, 2}, {3, 6}, {0, 0}, {2, 4}}, 2), ElementsAre(ElementsAre(2, 4), ElementsAre(1, 2)));
}

}  // namespace
}  // namespace ebb::originals
