#include "policy/originals_attention_twin.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/originals_budgets_twin.h"
#include "policy/originals_twin_test.h"

namespace ebb::originals {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two query heads of one KV head, three tokens, causal.
Heads causal_weights() {
  return {
      {{1, 0, 0}, {0.5, 0.5, 0}, {0.25, 0.25, 0.5}},
      {{1, 0, 0}, {0.25, 0.75, 0}, {0, 0.5, 0.5}},
  };
}

TEST(OriginalTova, scores_by_the_last_query_over_all_heads) {
  // (0.25 + 0) / 2, (0.25 + 0.5) / 2, (0.5 + 0.5) / 2
  EXPECT_THAT(tova_scores(causal_weights()), near({0.125, 0.375, 0.5}));
  EXPECT_THAT(keep_highest(tova_scores(causal_weights()), 2), ElementsAre(1, 2));
  EXPECT_THAT(keep_highest(tova_scores({{{0.5, 0.25, 0.25}}}), 2), ElementsAre(0, 2)) << "of equals the older leaves";
}

TEST(OriginalTova, has_no_order_but_age_where_the_query_sees_nothing) {
  EXPECT_THAT(keep_highest(tova_scores({{{0, 0, 0}}}), 1), ElementsAre(2));
  EXPECT_DEATH(tova_scores({{{NAN, 0}}}), "head 0 has a nan");
  EXPECT_DEATH(tova_scores({{{-0.5, 1.5}}}), "a weight of -0.5");
}

TEST(OriginalH2o, adds_up_what_tokens_receive) {
  // Head 0: 1.75, 0.75, 0.5; head 1: 1.25, 1.25, 0.5
  EXPECT_THAT(h2o_scores(causal_weights(), 1, 0), ElementsAre(near({1.5, 1, 0.5})));
  EXPECT_THAT(h2o_scores(causal_weights(), 2, 0), ElementsAre(near({1.75, 0.75, 0.5}), near({1.25, 1.25, 0.5})));
  EXPECT_THAT(h2o_scores(causal_weights(), 1, 1), ElementsAre(near({1.5, 1, kAlways})));
  EXPECT_THAT(keep_highest(h2o_scores(causal_weights(), 2, 1), 2), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 2)))
      << "in head 1 tokens 0 and 1 received as much: the older leaves";
}

TEST(OriginalH2o, is_divided_by_the_queries_that_could_see_a_token) {
  // 1.5 / 3, 1 / 2, 0.5 / 1: equal, and so the older leaves
  EXPECT_THAT(observed_attention_scores(causal_weights(), 1), ElementsAre(near({0.5, 0.5, 0.5})));
  EXPECT_THAT(keep_highest(observed_attention_scores(causal_weights(), 1), 1), ElementsAre(ElementsAre(2)));
  EXPECT_DEATH(observed_attention_scores({{{0.5, 0.5}}}, 1), "1 queries of 2 tokens");
}

// Six tokens, of which the window's two queries see those before it so; their own columns are dropped.
Heads window_weights() {
  return {
      {{9, 9, 9, 9, 9, 9}, {0.2, 0, 0.4, 0, 0.4, 0}, {0.4, 0, 0, 0.2, 0.2, 0.2}},
      {{9, 9, 9, 9, 9, 9}, {0, 0.6, 0, 0, 0.4, 0}, {0, 0, 0, 0.6, 0.2, 0.2}},
  };
}

TEST(OriginalSnapKv, averages_the_window_and_pools_what_is_before_it) {
  // Means over the window: 0.3 0 0.2 0.1 and 0 0.3 0 0.3.
  // Average of three: 0.1 1/6 0.1 0.1 and 0.1 0.1 0.2 0.1; their mean 0.1 0.4/3 0.15 0.1.
  const SnapKv average = {.window = 2, .kernel = 3};
  EXPECT_THAT(snapkv_scores(window_weights(), 1, average),
              ElementsAre(near({0.1, 0.4 / 3, 0.15, 0.1, kAlways, kAlways})));
  EXPECT_THAT(keep_highest(snapkv_scores(window_weights(), 1, average), 4), ElementsAre(ElementsAre(1, 2, 4, 5)));
  // Maximum of three: 0.3 0.3 0.2 0.2 and 0.3 0.3 0.3 0.3: the mean comes after it.
  const SnapKv maximum = {.window = 2, .pool = Pool::kMaximum, .kernel = 3};
  EXPECT_THAT(snapkv_scores(window_weights(), 1, maximum), ElementsAre(near({0.3, 0.3, 0.25, 0.25, kAlways, kAlways})));
  EXPECT_THAT(keep_highest(snapkv_scores(window_weights(), 1, maximum), 3), ElementsAre(ElementsAre(1, 4, 5)));
  EXPECT_THAT(keep_highest(snapkv_scores(window_weights(), 2, {.window = 2, .kernel = 1}), 3),
              ElementsAre(ElementsAre(0, 4, 5), ElementsAre(3, 4, 5)))
      << "each KV head its own; of 0.3 and 0.3 the older leaves";
}

TEST(OriginalSnapKv, lets_prompts_pass_that_are_no_longer_than_its_window) {
  EXPECT_THAT(snapkv_scores({{{0.5, 0.5}}}, 1, {}), ElementsAre(Each(kAlways)));
  EXPECT_THAT(keep_highest(snapkv_scores({{{0, 0, 0}}}, 1, {.window = 1}), 2), ElementsAre(ElementsAre(1, 2)))
      << "a query that sees nothing";
  EXPECT_DEATH(snapkv_scores({{{0.5, 0.5, 0}}}, 1, {.window = 2}), "a window of 2, 1 queries");
}

TEST(OriginalPyramid, chooses_by_the_scores_of_snapkv_in_each_layer) {
  // base 2, min 2 / 2 = 1, max 3, step 2: 3 + 1 and 1 + 1 tokens
  const Counts budgets = pyramid_budgets(6, {.n_layers = 2, .capacity = 3, .window = 1, .beta = 2});
  const Rows scores = snapkv_scores({{{0.3, 0.1, 0.2, 0.2, 0.1, 0.1}}}, 1, {.window = 1, .kernel = 1});
  EXPECT_THAT(keep_highest(scores, budgets[0]), ElementsAre(ElementsAre(0, 2, 3, 5)));
  EXPECT_THAT(keep_highest(scores, budgets[1]), ElementsAre(ElementsAre(0, 5)));
}

TEST(OriginalDefensiveKv, takes_the_worst_case_and_no_less_than_the_mean) {
  // Means of both heads by query: 0.6 0 0.4 and 0 0.1 0.9; maxima 0.6 0.1 0.9, mean 1.6 / 3, so token 1 has that.
  const Heads weights = {{{0.8, 0, 0.2}, {0, 0.2, 0.8}}, {{0.4, 0, 0.6}, {0, 0, 1}}};
  const Heads values = {{{1, 0}, {0, 1}, {0, 0}}};
  // (1, 0): ||(3, 4)|| = 5 and ||(1, 0)|| = 1, mean 3. (0, 1): ||(0, 2)|| = 2 and ||(0, 0)|| = 0, mean 1.
  const Heads output = {{{3, 4}, {0, 2}}, {{1, 0}, {0, 0}}};
  EXPECT_THAT(defensivekv_scores(weights, values, output, 0), ElementsAre(near({1.8, 1.6 / 3, 0})));
  // Without the window of one token: maxima 0.6 0.1, mean 0.35.
  EXPECT_THAT(defensivekv_scores(weights, values, output, 1), ElementsAre(near({1.8, 0.35, kAlways})));
}

TEST(OriginalDefensiveKv, ranks_layers_together_in_its_layer_form) {
  const Heads identity = {{{1}}};
  const Rows low = defensivekv_scores({{{0.5, 0.5, 0}}}, {{{1}, {1}, {1}}}, identity, 0);
  const Rows high = defensivekv_scores({{{1, 0, 0}}}, {{{9}, {9}, {9}}}, identity, 0);
  // 0.5 0.5 1/3 and 9 3 3
  EXPECT_THAT(keep_highest_of_all({low[0], high[0]}, 3), ElementsAre(IsEmpty(), ElementsAre(0, 1, 2)));
  EXPECT_THAT(keep_highest_of_all({low[0], high[0]}, 4), ElementsAre(ElementsAre(1), ElementsAre(0, 1, 2)));
  EXPECT_THAT(defensivekv_scores({{{0, 0}}}, {{{1}, {1}}}, identity, 0), ElementsAre(near({0, 0})));
}

TEST(OriginalDropKv, is_the_error_of_the_output_without_the_token) {
  // o = 0.5 * 0 + 0.25 * 4 + 0.25 * 8 = 3. Costs: 1 * 9, (1/3)^2 * 1, (1/3)^2 * 25.
  EXPECT_THAT(dropkv_scores({{{0.5, 0.25, 0.25}}}, {{{0}, {4}, {8}}}), ElementsAre(near({9, 1.0 / 9, 25.0 / 9})));
  // Without token 0 the others weigh 0.5 each: 6, and 3 - 6 squared is 9.
  // A second query that sees tokens 1 and 2 alike has o = 6 and costs 0 4 4; means 4.5 37/18 61/18.
  EXPECT_THAT(dropkv_scores({{{0.5, 0.25, 0.25}, {0, 0.5, 0.5}}}, {{{0}, {4}, {8}}}),
              ElementsAre(near({4.5, 37.0 / 18, 61.0 / 18})));
  EXPECT_THAT(dropkv_scores({{{0.5, 0.25, 0.25}}, {{0, 0.5, 0.5}}}, {{{0}, {4}, {8}}}),
              ElementsAre(near({4.5, 37.0 / 18, 61.0 / 18})))
      << "and so has a second head of the group";
}

TEST(OriginalDropKv, keeps_what_is_all_that_a_query_sees_and_has_no_opinion_where_nothing_is_seen) {
  EXPECT_THAT(dropkv_scores({{{1, 0}}}, {{{3}, {4}}}), ElementsAre(near({kAlways, 0})));
  EXPECT_THAT(dropkv_scores({{{0, 0}}}, {{{3}, {4}}}), ElementsAre(near({0, 0})));
  EXPECT_THAT(dropkv_scores({{{0.5, 0.5}}}, {{{3}, {3}}}), ElementsAre(near({0, 0})))
      << "equal values replace each other";
}

TEST(OriginalKvZip, takes_the_largest_weight_of_the_replay) {
  const Heads replay = {{{0.1, 0.2, 0.3, 0}, {0.1, 0.5, 0.1, 0}}, {{0.2, 0, 0.4, 0.1}, {0, 0.1, 0, 0.05}}};
  EXPECT_THAT(kvzip_scores(replay, 1, 1), ElementsAre(near({1, 0.5, 0.4, 0.1})));
  EXPECT_THAT(kvzip_scores(replay, 2, 1), ElementsAre(near({1, 0.5, 0.3, 0}), near({1, 0.1, 0.4, 0.1})));
  EXPECT_THAT(kvzip_scores(replay, 1), ElementsAre(near({1, 1, 1, 1}))) << "all of them sinks";
}

TEST(OriginalKvZip, removes_the_lowest_of_all_layers_and_heads) {
  // Of 8 scores floor(0.55 * 8) = 4 leave: 0.1, then of the three 0.2s token 1 of head 0, token 1 of head 1, token 2 of head 0.
  const Rows scores = {{1, 0.2, 0.2, 0.7}, {1, 0.2, 0.1, 0.6}};
  EXPECT_THAT(kvzip_kept(scores, 0.55), ElementsAre(ElementsAre(0, 3), ElementsAre(0, 3)));
  EXPECT_THAT(kvzip_kept(scores, 0.25), ElementsAre(ElementsAre(0, 2, 3), ElementsAre(0, 1, 3)));
  EXPECT_THAT(kvzip_kept(scores, 0), ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(0, 1, 2, 3)));
}

}  // namespace
}  // namespace ebb::originals
