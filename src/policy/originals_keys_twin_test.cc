#include "policy/originals_keys_twin.h"

#include <cmath>
#include <numbers>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/originals_twin_test.h"

namespace ebb::originals {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(OriginalKeyDiff, keeps_the_least_typical_keys) {
  // Directions (1, 0) twice and (0, 1): a = (2/3, 1/3), of length sqrt(5) / 3
  const Heads keys = {{{1, 0}, {2, 0}, {0, 3}}};
  const double root = std::sqrt(5.0);
  EXPECT_THAT(keydiff_scores(keys), ElementsAre(near({-2 / root, -2 / root, -1 / root})));
  EXPECT_THAT(keep_highest(keydiff_scores(keys), 2), ElementsAre(ElementsAre(1, 2))) << "of like keys the older leaves";
}

TEST(OriginalKeyDiff, of_blocks_forgets_the_early_keys_that_one_look_at_all_would_keep) {
  const Row x = {1, 0};
  const Row y = {0, 1};
  const Heads keys = {{x, x, y, y, y}};
  EXPECT_THAT(keep_highest(keydiff_scores(keys), 1), ElementsAre(ElementsAre(1))) << "there are more of y";
  // 0; 0 1 -> 1; 1 2: as typical as each other, -> 2; 2 3 -> 3; 3 4 -> 4
  EXPECT_THAT(keydiff_kept(keys, 1, 1), ElementsAre(ElementsAre(4)));
  // 0 1; 0 1 2: two of x, -> 1 2; 1 2 3: two of y, -> 1 3; 1 3 4 -> 1 4
  EXPECT_THAT(keydiff_kept(keys, 2, 1), ElementsAre(ElementsAre(1, 4)));
  // 0; 0 1 2 3: all as typical, -> 3; 3 4 -> 4, in a block that is not full
  EXPECT_THAT(keydiff_kept(keys, 1, 3), ElementsAre(ElementsAre(4)));
  EXPECT_THAT(keydiff_kept(keys, 5), ElementsAre(ElementsAre(0, 1, 2, 3, 4)));
}

TEST(OriginalKeyDiff, has_no_order_but_age_where_no_key_differs_or_none_has_a_direction) {
  EXPECT_THAT(keep_highest(keydiff_scores({{{0.3, 0.7}, {0.3, 0.7}, {0.3, 0.7}}}), 1), ElementsAre(ElementsAre(2)));
  EXPECT_THAT(keydiff_scores({{{0, 0}, {0, 0}}}), ElementsAre(Each(0)));
  EXPECT_THAT(keydiff_scores({{{1, 0}, {-1, 0}}}), ElementsAre(Each(0))) << "the mean direction is none";
  EXPECT_THAT(keydiff_scores({{{0, 0}, {2, 0}}}), ElementsAre(near({0, -1})));
  EXPECT_DEATH(keydiff_scores({{{NAN, 0}}}), "head 0 has a nan");
}

TEST(OriginalKnorm, keeps_short_keys) {
  const Heads keys = {{{3, 4}, {0, 1}, {0, 0}, {1, 0}}, {{1, 0}, {2, 0}, {3, 0}, {4, 0}}};
  EXPECT_THAT(knorm_scores(keys), ElementsAre(ElementsAre(-5, -1, 0, -1), ElementsAre(-1, -2, -3, -4)));
  EXPECT_THAT(keep_highest(knorm_scores(keys), 2), ElementsAre(ElementsAre(2, 3), ElementsAre(0, 1)));
}

TEST(OriginalLagKv, measures_a_partition_by_the_one_behind_it) {
  // A sink; partitions 1 2, 3 4, 5 6; a tail. 5 6 and 7 have nothing behind them.
  const Heads keys = {{{9, 9}, {0, 0}, {2, 0}, {0, 0}, {2, 4}, {1, 1}, {1, 1}, {8, 8}}};
  const Heads values = {Rows(8, Row{0, 0})};
  const LagKv lagkv = {.n_sinks = 1, .lag = 2, .smallest_range = 1};
  // By 3 4: lo (0, 0), hi (2, 4). z of 1: (0, 0), deviation 0; of 2: (1, 0), sqrt(0.25 + 0.25).
  // By 5 6: lo = hi = (1, 1), a range of 1. z of 3: (-1, -1), 0; of 4: (1, 3), sqrt(1 + 1).
  // Values, all alike, add 1 / 2 everywhere.
  const double a = std::exp(std::sqrt(0.5));
  const double b = std::exp(std::sqrt(2.0));
  EXPECT_THAT(lagkv_scores(keys, values, lagkv),
              ElementsAre(near({kAlways, 1 / (1 + a) + 0.5, a / (1 + a) + 0.5, 1 / (1 + b) + 0.5, b / (1 + b) + 0.5,
                                kAlways, kAlways, kAlways})));
  EXPECT_THAT(lagkv_kept(lagkv_scores(keys, values, lagkv), lagkv), ElementsAre(ElementsAre(0, 2, 4, 5, 6, 7)));
  LagKv without_values = lagkv;
  without_values.rho = 0;
  EXPECT_NEAR(lagkv_scores(keys, values, without_values)[0][1], 1 / (1 + a), 1e-12);
}

TEST(OriginalLagKv, stays_finite_where_nothing_varies_and_waits_for_two_partitions) {
  const LagKv lagkv = {.n_sinks = 1, .lag = 2};
  const Heads constant = {Rows(5, Row{3, 4})};
  EXPECT_THAT(lagkv_scores(constant, constant, lagkv), ElementsAre(near({kAlways, 1, 1, kAlways, kAlways})));
  EXPECT_THAT(lagkv_kept(lagkv_scores(constant, constant, lagkv), lagkv), ElementsAre(ElementsAre(0, 2, 3, 4)));
  const Heads shorter = {Rows(4, Row{3, 4})};
  EXPECT_THAT(lagkv_scores(shorter, shorter, lagkv), ElementsAre(Each(kAlways)));
  EXPECT_THAT(lagkv_kept(lagkv_scores(shorter, shorter, lagkv), lagkv), ElementsAre(ElementsAre(0, 1, 2, 3)));
}

TEST(OriginalExpectedAttention, weighs_keys_by_the_queries_to_be_expected) {
  // After the sink's query: mean (2, 0), covariance 1 in the first channel. At position 0 nothing turns.
  // Key (1, 0): 2 / sqrt(2) + 1 / 4; key (0, 1): 0. Values of lengths 5 and 1.
  const Heads queries = {{{100, 100}, {1, 0}, {3, 0}}};
  const Heads keys = {{{7, 7}, {1, 0}, {0, 1}}};
  const Heads values = {{{7, 7}, {3, 4}, {1, 0}}};
  ExpectedAttention expected = {.n_sinks = 1, .n_future = 1};
  const double e = std::exp(std::sqrt(2.0) + 0.25);
  const double a = e / (1 + e);
  EXPECT_THAT(expected_attention_scores(queries, keys, values, expected), ElementsAre(near({kAlways, 5 * a, 1 - a})));
  // A second head of the group whose queries are 0 weighs both alike.
  EXPECT_THAT(expected_attention_scores({queries[0], Rows(3, Row{0, 0})}, keys, values, expected),
              ElementsAre(near({kAlways, 5 * (a + 0.5) / 2, (1.5 - a) / 2})));
  expected.epsilon = 0.5;
  EXPECT_THAT(expected_attention_scores(queries, keys, values, expected),
              ElementsAre(near({kAlways, 5 * (a + 0.5), 1.5 - a})));
  EXPECT_THAT(expected_attention_scores(queries, keys, values, {.n_sinks = 2, .n_future = 1}),
              ElementsAre(near({kAlways, kAlways, 1})))
      << "one query, no covariance; one key, all the weight";
}

TEST(OriginalExpectedAttention, turns_halves_by_the_mean_over_the_positions_to_come) {
  // Channels 0 and 2 turn by 1 a position, 1 and 3 by theta^(-1/2) = pi: over positions 0 and 1 these two cancel out.
  // The mean query (1, 1, 0, 0) becomes (c, 0, s, 0).
  const double c = (1 + std::cos(1.0)) / 2;
  const double s = std::sin(1.0) / 2;
  const Heads queries = {{{1, 1, 0, 0}}};
  const Heads keys = {{{0, 0, 1, 0}, {1, 0, 0, 0}, {0, 5, 0, 7}}};
  const Heads ones = {Rows(3, Row{1})};
  const ExpectedAttention expected = {.n_sinks = 0, .n_future = 2, .theta = 1 / (std::numbers::pi * std::numbers::pi)};
  EXPECT_THAT(expected_attention_scores(queries, keys, ones, expected), ElementsAre(near(softmax({s / 2, c / 2, 0}))));
  // (0, 0, 1, 1) becomes (-s, 0, c, 0).
  EXPECT_THAT(expected_attention_scores({{{0, 0, 1, 1}}}, keys, ones, expected),
              ElementsAre(near(softmax({c / 2, -s / 2, 0}))));
}

TEST(OriginalExpectedAttention, turns_the_covariance_too) {
  // Mean 0, covariance 1 in channel 0, which position 1 turns to (cos 1, sin 1).
  const Heads queries = {{{1, 0}, {-1, 0}}};
  const Heads keys = {{{1, 0}, {0, 1}}};
  const ExpectedAttention expected = {.n_sinks = 0, .n_future = 1, .next_position = 1};
  const double c = std::cos(1.0);
  const double s = std::sin(1.0);
  EXPECT_THAT(expected_attention_scores(queries, keys, {{{1}, {1}}}, expected),
              ElementsAre(near(softmax({c * c / 4, s * s / 4}))));
}

TEST(OriginalExpectedAttention, keeps_the_newest_of_equal_keys) {
  const Heads constant = {Rows(4, Row{1, 2})};
  const ExpectedAttention expected = {.n_sinks = 1, .n_future = 8, .next_position = 4};
  EXPECT_THAT(keep_highest(expected_attention_scores(constant, constant, constant, expected), 2),
              ElementsAre(ElementsAre(0, 3)));
  EXPECT_DEATH(expected_attention_scores({Rows(1, Row{1, 2})}, constant, constant, expected),
               "1 queries, 1 of them of sinks");
}

TEST(OriginalRKv, does_not_hold_a_copy_against_the_newest) {
  // Rows of cosines, less the last similar one: 0 0 1 -, none, 1 0 0 -, 1 0 - 0. Means 2/4 0 1/4 0.
  EXPECT_THAT(rkv_redundancy({{1, 0}, {0, 1}, {1, 0}, {2, 0}}, 0.5), near(softmax({0.5, 0, 0.25, 0}), 1e-7));
  // Cosine 1 / sqrt(5) is not similar: both rows lose column 0, and so key 0 its likeness to key 1.
  EXPECT_THAT(rkv_redundancy({{1, 0}, {1, 2}}, 0.5), near(softmax({0, 0.5 / std::sqrt(5.0)}), 1e-7));
  // Constant keys: 0 1 -, 1 0 -, 1 - 0
  EXPECT_THAT(rkv_redundancy({{1, 1}, {1, 1}, {1, 1}}, 0.5), near(softmax({2.0 / 3, 1.0 / 3, 0}), 1e-7));
  EXPECT_THAT(rkv_redundancy({{0, 0}, {0, 0}}, 0.5), near({0.5, 0.5})) << "without a direction";
}

TEST(OriginalRKv, weighs_importance_against_redundancy) {
  // The larger of both heads' logits: ln 3 and 0, weights 3/4 and 1/4. Cosines: 0 and 2 are alike, which both rows spare; key 1
  // has no direction. So r is 1/3 each.
  const Heads queries = {{{1}}, {{-1}}};
  const Heads keys = {{{std::log(3.0)}, {0}, {5}}};
  EXPECT_THAT(rkv_scores(queries, keys, {.window = 1, .kernel = 1, .lambda = 0.5}),
              ElementsAre(near({0.375 - 1.0 / 6, 0.125 - 1.0 / 6, kAlways})));
  EXPECT_THAT(rkv_scores(queries, keys, {.window = 1, .kernel = 3, .lambda = 1}),
              ElementsAre(near({0.75, 0.75, kAlways})));
  EXPECT_THAT(keep_highest(rkv_scores(queries, keys, {.window = 1, .kernel = 3, .lambda = 1}), 2),
              ElementsAre(ElementsAre(1, 2)))
      << "of equals the older leaves";
  // A second query weighs 1/2 and 1/2: means 5/8 and 3/8.
  EXPECT_THAT(rkv_scores({{{1}, {0}}}, {{{std::log(3.0)}, {0}, {5}, {5}}}, {.window = 2, .kernel = 1, .lambda = 1}),
              ElementsAre(near({0.625, 0.375, kAlways, kAlways})));
}

TEST(OriginalRKv, keeps_all_of_what_its_window_holds) {
  EXPECT_THAT(rkv_scores({{{1}, {1}}}, {{{1}, {2}}}, {.window = 2}), ElementsAre(Each(kAlways)));
  EXPECT_DEATH(rkv_scores({{{1}}}, {{{1}, {2}}}, {.window = 2}), "1 queries, a window of 2");
}

}  // namespace
}  // namespace ebb::originals
