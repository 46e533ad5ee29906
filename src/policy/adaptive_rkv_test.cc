#include "policy/adaptive_rkv.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::int32_t> choose(const std::vector<double>& scores, std::int32_t n_keep, double mass,
                                 const std::vector<float>& diversity) {
  return choose_adaptive({.block_scores = scores, .n_keep = n_keep, .attention_mass = mass, .diversity = diversity});
}

TEST(AdaptiveRkv, keeps_the_best_by_score_and_evicts_all_others_where_they_are_enough) {
  const std::vector<float> unasked(16, 0.0F);
  EXPECT_THAT(choose({5, 1, 3, 1}, 2, 0.9, unasked), ElementsAre(1, 3));
  EXPECT_THAT(choose({5, 1, 3, 1}, 0, 0.9, unasked), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(choose({5, 1, 3, 1}, 4, 0.9, unasked), IsEmpty());
}

TEST(AdaptiveRkv, includes_the_block_that_crosses_the_mass_and_takes_none_of_it_after) {
  // Blocks of 1 token. Half of 10 is reached by the first alone (5 is not below 5), so two of the others stay by diversity.
  const std::vector<float> diversity = {0, 0,  0,  0,   //
                                        0, -1, -1, -1,  //
                                        0, -3, -3, -3,  //
                                        0, -2, -2, -2};
  EXPECT_THAT(choose({5, 1, 3, 1}, 3, 0.5, diversity), ElementsAre(2)) << "the least diverse, better as its score is";
  EXPECT_THAT(choose({5, 1, 3, 1}, 3, 0.51, diversity), ElementsAre(3)) << "5 is below 5.1: the next is taken by score";
  EXPECT_THAT(choose({0, 0, 0, 0}, 1, 0.9, diversity), ElementsAre(1, 2, 3)) << "a total of nothing takes none";
}

TEST(AdaptiveRkv, means_diversity_over_the_candidates_only) {
  // Block 0 is taken by score: what others say of its tokens (the first two columns) counts for nothing.
  const std::vector<float> diversity = {0,  0,  0,  0,  0,  0,   //
                                        -9, -9, -1, -1, -1, -1,  //
                                        0,  0,  -2, -2, -2, -2};
  EXPECT_THAT(choose({5, 1, 1}, 2, 0.5, diversity), ElementsAre(2));
}

TEST(AdaptiveRkv, keeps_the_lower_number_among_equally_diverse_blocks) {
  EXPECT_THAT(choose({1, 1, 1}, 2, 0.0, std::vector<float>(9, -1.0F)), ElementsAre(2));
}

TEST(OrderAdaptive, is_what_is_chosen_however_many_stay) {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    const auto n = static_cast<std::int32_t>(random() % 12);
    std::vector<double> scores;
    std::vector<float> diversity;
    for (std::int32_t i = 0; i < n; ++i) scores.push_back(static_cast<double>(random() % 4));
    for (std::int32_t i = 0; i < n * n; ++i) diversity.push_back(-static_cast<float>(random() % 3));
    const double mass = static_cast<double>(random() % 5) / 4.0;
    const std::vector<std::int32_t> order =
        order_adaptive({.block_scores = scores, .attention_mass = mass}, [&](std::span<const std::int32_t> blocks) {
          std::vector<double> among;
          for (const std::int32_t a : blocks) {
            double sum = 0.0;
            for (const std::int32_t b : blocks) sum += double{diversity[static_cast<std::size_t>(a * n + b)]};
            among.push_back(sum / static_cast<double>(blocks.size()));
          }
          return among;
        });
    for (std::int32_t n_keep = 0; n_keep <= n; ++n_keep) {
      std::vector<std::int32_t> leaving(order.begin(), order.end() - n_keep);
      std::ranges::sort(leaving);
      EXPECT_EQ(leaving, choose(scores, n_keep, mass, diversity)) << "round " << round << ", " << n_keep << " stay";
    }
  }
}

TEST(OrderAdaptive, compares_no_more_than_it_may_and_those_with_the_least_score) {
  const std::vector<double> scores = {1, 4, 2, 3, 2};
  std::vector<std::int32_t> compared;
  const auto lower_is_diverse = [&](std::span<const std::int32_t> blocks) {
    compared.assign(blocks.begin(), blocks.end());
    return std::vector<double>{2, 1, 0};
  };
  const AdaptiveRule rule{.block_scores = scores, .attention_mass = 0.0, .n_most_compared = 3};
  EXPECT_THAT(order_adaptive(rule, lower_is_diverse), ElementsAre(4, 2, 0, 3, 1));
  EXPECT_THAT(compared, ElementsAre(0, 2, 4));
  const auto unasked = [](std::span<const std::int32_t>) -> std::vector<double> {
    ADD_FAILURE() << "nobody is left to compare";
    return {};
  };
  EXPECT_THAT(order_adaptive({.block_scores = scores, .attention_mass = 1.0}, unasked), ElementsAre(0, 4, 2, 3, 1));
}

TEST(RecentPasses, mean_is_of_the_last_ones_and_takes_unseen_tokens_for_nothing) {
  RecentPasses passes(2);
  passes.add(std::vector<float>{8});
  passes.add(std::vector<float>{2, 4});
  EXPECT_THAT(passes.mean(), ElementsAre(5, 2));
  passes.add(std::vector<float>{0, 0, 6});
  EXPECT_THAT(passes.mean(), ElementsAre(1, 2, 3));
  passes.clear();
  passes.add(std::vector<float>{1});
  EXPECT_THAT(passes.mean(), ElementsAre(1));
}

}  // namespace
}  // namespace ebb
