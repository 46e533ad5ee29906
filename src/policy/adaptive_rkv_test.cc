#include "policy/adaptive_rkv.h"

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
