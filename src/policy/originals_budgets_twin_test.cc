#include "policy/originals_budgets_twin.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb::originals {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::size_t sum(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), std::size_t{0}); }

TEST(OriginalShares, are_floored_and_the_largest_fractions_get_the_rest) {
  // 2 + 1 + 3 = 6; one left, .7 is the largest fraction
  EXPECT_THAT(round_shares({2.2, 1.7, 3.1}, 7, {.highest = 9}), ElementsAre(2, 2, 3));
  // Two left for three halves: the lower ones
  EXPECT_THAT(round_shares({1.5, 1.5, 1.5, 0.5}, 5, {.highest = 9}), ElementsAre(2, 2, 1, 0));
  EXPECT_THAT(round_shares({4, 3}, 7, {.highest = 9}), ElementsAre(4, 3));
  // 10/3 each: 3 + 3 + 3, one left for equals: the lowest
  EXPECT_THAT(round_shares({10.0 / 3, 10.0 / 3, 10.0 / 3}, 10, {.highest = 9}), ElementsAre(4, 3, 3));
  // 0.1 + 0.2 is more than 0.3 by rounding alone: equals all the same
  EXPECT_THAT(round_shares({0.3, 0.1 + 0.2, 0.2, 0.2}, 1, {.highest = 9}), ElementsAre(1, 0, 0, 0));
}

TEST(OriginalShares, of_another_sum_are_scaled) {
  EXPECT_THAT(round_shares({1, 3}, 8, {.highest = 9}), ElementsAre(2, 6));
  // 5/6, 10/6, 15/6: 0 + 1 + 2; two left for .83 and .67
  EXPECT_THAT(round_shares({1, 2, 3}, 5, {.highest = 9}), ElementsAre(1, 2, 2));
  EXPECT_THAT(round_shares({0, 0, 0}, 5, {.highest = 9}), ElementsAre(2, 2, 1)) << "nobody has a share: equal ones";
}

TEST(OriginalShares, keep_their_limits_and_the_others_share_what_that_frees_or_takes) {
  // 8 is above 5: 3 more for the others, 1 : 1, so 1 + 1.5 each; of equal halves the lower gets one
  EXPECT_THAT(round_shares({8, 1, 1}, 10, {.highest = 5}), ElementsAre(5, 3, 2));
  // 0 and 1 are below 2: 6 of 10 are left for the others, 6 : 3
  EXPECT_THAT(round_shares({6, 0, 1, 3}, 10, {.lowest = 2, .highest = 9}), ElementsAre(4, 2, 2, 2));
  // 10 is above 4 and frees 6; 2 becomes 8, above 4 too, and frees 4 for one that has no share
  EXPECT_THAT(round_shares({10, 0, 2}, 12, {.lowest = 1, .highest = 4}), ElementsAre(4, 4, 4));
  // 9 frees 3, with which both halves are above 1 by themselves
  EXPECT_THAT(round_shares({9, 0.5, 0.5}, 10, {.lowest = 1, .highest = 6}), ElementsAre(6, 2, 2));
  EXPECT_DEATH(round_shares({1, 1}, 10, {.highest = 4}), "cannot make 10");
  EXPECT_DEATH(round_shares({1, NAN}, 2, {.highest = 4}), "a share of nan");
}

TEST(OriginalPyramid, floors_its_step_and_so_spends_more_than_its_total) {
  // base 24 - 4 = 20, min 20 / 20 = 1, max 39 < 96, step floor(38 / 3) = 12: 39 27 15 3, and the window of 4
  const Pyramid pyramid = {.n_layers = 4, .capacity = 24, .window = 4};
  EXPECT_THAT(pyramid_budgets(100, pyramid), ElementsAre(43, 31, 19, 7)) << "100, and not 4 * 24 = 96";
  // 39, 26 1/3, 13 2/3, 1: the one left goes to 13 2/3
  EXPECT_THAT(pyramid_budgets_exact(100, pyramid), ElementsAre(43, 30, 18, 5));
}

TEST(OriginalPyramid, is_flatter_for_short_prompts_and_leaves_shorter_ones_alone) {
  const Pyramid pyramid = {.n_layers = 4, .capacity = 24, .window = 4};
  // max 39 >= 42 - 4: max 38, min 2, step 12
  EXPECT_THAT(pyramid_budgets(42, pyramid), ElementsAre(42, 30, 18, 6));
  EXPECT_THAT(pyramid_budgets_exact(42, pyramid), ElementsAre(42, 30, 18, 6));
  EXPECT_THAT(pyramid_budgets(39, pyramid), Each(24)) << "24 <= 39 < 2 * 20";
  EXPECT_THAT(pyramid_budgets_exact(39, pyramid), Each(24));
  EXPECT_THAT(pyramid_budgets(23, pyramid), Each(23)) << "under its capacity";
  EXPECT_THAT(pyramid_budgets_exact(23, pyramid), Each(23));
  EXPECT_THAT(pyramid_budgets(100, {.n_layers = 1, .capacity = 24, .window = 4}), ElementsAre(24));
  EXPECT_THAT(pyramid_budgets_exact(100, {.n_layers = 1, .capacity = 24, .window = 4}), ElementsAre(24));
}

TEST(OriginalPyramid, spends_at_most_496_tokens_too_many_over_32_layers) {
  std::size_t most = 0;
  for (std::size_t capacity = 128; capacity < 256; ++capacity) {
    const Pyramid pyramid = {.n_layers = 32, .capacity = capacity};
    most = std::max(most, sum(pyramid_budgets(4096, pyramid)) - 32 * capacity);
    EXPECT_EQ(sum(pyramid_budgets_exact(4096, pyramid)), 32 * capacity);
  }
  EXPECT_GT(most, 400U);
  EXPECT_LE(most, 496U);
}

TEST(OriginalAdaKv, gives_sharp_heads_less_than_flat_ones_and_no_head_nothing) {
  // base 3: of the top 6 scores 4 (9 8 7 6) are of head 0 and 2 (5 4) of head 1.
  // round(4 / 2 + floor(1.5)) = 3, round(2 / 2 + 1) = 2: five tokens and not six
  const Rows scores = {{9, 8, 7, 6, 1}, {5, 4, 1, 1, 1}};
  EXPECT_THAT(adakv_budgets(scores, {.capacity = 3}), ElementsAre(3, 2));
  EXPECT_THAT(keep_highest(scores, adakv_budgets(scores, {.capacity = 3})),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(0, 1)));
  // 4 / 2 + 1.5 = 3.5 and 2.5: of equal halves the lower head's
  EXPECT_THAT(adakv_budgets_exact(scores, {.capacity = 3}), ElementsAre(4, 2));
  EXPECT_THAT(adakv_budgets(scores, {.capacity = 3, .alpha = 1}), ElementsAre(3, 3)) << "uniform";
  EXPECT_THAT(adakv_budgets(scores, {.capacity = 3, .alpha = 0}), ElementsAre(4, 2));
}

TEST(OriginalAdaKv, rounds_halves_to_even) {
  // base 2, c = 3 and 1: 1.5 + 1 = 2.5 and 0.5 + 1 = 1.5 both round to 2
  EXPECT_THAT(adakv_budgets({{9, 8, 7}, {6, 1, 1}}, {.capacity = 2}), ElementsAre(2, 2));
  EXPECT_THAT(adakv_budgets_exact({{9, 8, 7}, {6, 1, 1}}, {.capacity = 2}), ElementsAre(3, 1));
}

TEST(OriginalAdaKv, counts_the_window_beside_what_is_shared) {
  // One token of window each: base 2, as before; the window comes on top.
  const Rows scores = {{9, 8, 7, kAlways}, {6, 1, 1, kAlways}};
  EXPECT_THAT(adakv_budgets(scores, {.capacity = 3}), ElementsAre(3, 3));
  EXPECT_THAT(keep_highest(scores, adakv_budgets(scores, {.capacity = 3})),
              ElementsAre(ElementsAre(0, 1, 3), ElementsAre(0, 2, 3)));
  EXPECT_THAT(adakv_budgets_exact(scores, {.capacity = 3}), ElementsAre(4, 2));
}

TEST(OriginalAdaKv, shares_equal_scores_from_the_newest_on_and_drops_nothing_under_its_base) {
  // base 1, two of four equal scores: both of token 1
  EXPECT_THAT(adakv_budgets({{5, 5}, {5, 5}}, {.capacity = 1, .alpha = 0}), ElementsAre(1, 1));
  EXPECT_THAT(adakv_budgets({{5, 4}, {3, 2}}, {.capacity = 3}), ElementsAre(2, 2)) << "base 3 > 2 tokens";
  EXPECT_THAT(adakv_budgets_exact({{5, 4}, {3, 2}}, {.capacity = 3}), ElementsAre(2, 2));
  // base 3 of 3 tokens: c = 3, 1.5 + floor(1.5) = 2.5, to even
  EXPECT_THAT(adakv_budgets({{5, 4, 3}}, {.capacity = 3}), ElementsAre(2)) << "the original drops one here";
  EXPECT_THAT(adakv_budgets_exact({{5, 4, 3}}, {.capacity = 3}), ElementsAre(3));
}

}  // namespace
}  // namespace ebb::originals
