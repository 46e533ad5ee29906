#include "bench/statistics.h"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(Statistics, the_median_of_an_odd_number_of_values_is_the_one_in_the_middle) {
  EXPECT_EQ(median(std::array{9.0, 1.0, 5.0}), 5.0);
  EXPECT_EQ(median(std::array{7.0}), 7.0);
}

TEST(Statistics, the_median_of_an_even_number_of_values_lies_between_the_two_in_the_middle) {
  EXPECT_EQ(median(std::array{4.0, 1.0, 100.0, 2.0}), 3.0);
}

TEST(Statistics, one_wild_value_moves_the_spread_but_not_the_median) {
  const Spread calm = spread_of(std::array{10.0, 11.0, 12.0, 13.0, 14.0});
  const Spread wild = spread_of(std::array{10.0, 11.0, 12.0, 13.0, 1000.0});
  EXPECT_EQ(calm.median, wild.median);
  EXPECT_EQ(wild.min, 10.0);
  EXPECT_EQ(wild.max, 1000.0);
  EXPECT_EQ(wild.n, 5);
}

TEST(Statistics, pairs_cancel_what_slows_both_sides_down_at_once) {
  const std::array fast{100.0, 10.0, 50.0};  // the machine was busy in the second round
  const std::array slow{50.0, 5.0, 25.0};
  EXPECT_EQ(spread_of(paired_ratios(fast, slow)), (Spread{.median = 2.0, .min = 2.0, .max = 2.0, .n = 3}));
}

// The sixth and the fifteenth of 20, the fortieth and the sixty-first of 100, as tables of order statistics have it.
TEST(Statistics, the_interval_of_a_median_lies_between_values_in_order) {
  std::vector<double> values;
  for (int i = 20; i > 0; --i) values.push_back(i);
  const MedianInterval of_20 = median_interval(values);
  EXPECT_EQ(std::pair(of_20.low, of_20.high), std::pair(6.0, 15.0));
  EXPECT_EQ(of_20.median, 10.5);
  for (int i = 21; i <= 100; ++i) values.push_back(i);
  EXPECT_EQ(std::pair(median_interval(values).low, median_interval(values).high), std::pair(40.0, 61.0));
  const MedianInterval of_3 = median_interval(std::array{3.0, 1.0, 2.0});
  EXPECT_EQ(std::pair(of_3.low, of_3.high), std::pair(1.0, 3.0));
}

// Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20.
TEST(Statistics, the_interval_of_a_share_is_wilsons) {
  EXPECT_NEAR(share_interval(81, 263).low, 0.2553, 1e-4);
  EXPECT_NEAR(share_interval(81, 263).high, 0.3662, 1e-4);
  EXPECT_NEAR(share_interval(15, 148).low, 0.0624, 1e-4);
  EXPECT_NEAR(share_interval(15, 148).high, 0.1605, 1e-4);
  EXPECT_EQ(share_interval(0, 20).low, 0.0);
  EXPECT_NEAR(share_interval(0, 20).high, 0.1611, 1e-4);
  EXPECT_EQ(share_interval(20, 20).high, 1.0);
}

TEST(Statistics, the_interval_of_a_share_holds_it_to_the_last_bit) {
  for (std::int64_t n = 1; n <= 300; ++n) {
    for (std::int64_t n_hits = 0; n_hits <= n; ++n_hits) {
      const double share = static_cast<double>(n_hits) / static_cast<double>(n);
      EXPECT_LE(share_interval(n_hits, n).low, share);
      EXPECT_GE(share_interval(n_hits, n).high, share);
    }
  }
}

TEST(Statistics, a_difference_of_pairs_has_an_interval_that_holds_its_mean) {
  std::vector<double> better;
  std::vector<double> worse;
  for (int i = 0; i < 40; ++i) {
    worse.push_back(i % 7);  // what differs from pair to pair is in both sides
    better.push_back(i % 7 + (i % 4 == 0 ? 1.0 : 0.0));
  }
  const PairedDifference found = paired_difference(better, worse);
  EXPECT_DOUBLE_EQ(found.mean, 0.25);
  // Of a share of a quarter of 40, the normal approximation: 0.25 +- 0.134.
  EXPECT_NEAR(found.low, 0.116, 0.03);
  EXPECT_NEAR(found.high, 0.384, 0.03);
  EXPECT_EQ(paired_difference(worse, worse).low, 0.0);
  EXPECT_EQ(paired_difference(worse, worse).high, 0.0);
}

TEST(StatisticsDeathTest, unequal_numbers_of_measurements_are_no_pairs) {
  EXPECT_DEATH((void)paired_ratios(std::array{1.0, 2.0}, std::array{1.0}), "2 values against 1");
}

TEST(Statistics, scores_of_0_and_1_have_wilsons_interval_and_others_one_around_their_mean) {
  const ShareInterval whole = score_interval(std::vector<double>{1.0, 0.0, 1.0, 1.0});
  const ShareInterval wilson = share_interval(3, 4);
  EXPECT_DOUBLE_EQ(whole.low, wilson.low);
  EXPECT_DOUBLE_EQ(whole.high, wilson.high);
  const ShareInterval parts = score_interval(std::vector<double>{0.5, 0.25, 0.75, 1.0});
  EXPECT_GE(parts.low, 0.25);
  EXPECT_LT(parts.low, 0.625);
  EXPECT_GT(parts.high, 0.625);
  EXPECT_LE(parts.high, 1.0);
}

TEST(Statistics, a_paired_share_is_that_of_the_sums_and_narrow_where_pairs_agree) {
  const std::vector<double> all = {1.0, 1.0, 0.0, 1.0, 0.0, 1.0};
  const std::vector<double> half = {1.0, 0.0, 0.0, 1.0, 0.0, 0.0};
  EXPECT_DOUBLE_EQ(paired_share(half, all)->share, 0.5);
  EXPECT_LT(paired_share(half, all)->low, 0.5);
  EXPECT_GT(paired_share(half, all)->high, 0.5);
  EXPECT_DOUBLE_EQ(paired_share(all, all)->low, 1.0);
  EXPECT_DOUBLE_EQ(paired_share(all, all)->high, 1.0);
  EXPECT_FALSE(paired_share(half, std::vector<double>(6, 0.0)).has_value());
}

TEST(Statistics, a_quantile_is_the_value_of_its_rank) {
  const std::vector<double> values = {5.0, 1.0, 4.0, 2.0, 3.0};
  EXPECT_EQ(quantile(values, 0.0), 1.0);
  EXPECT_EQ(quantile(values, 0.2), 1.0);
  EXPECT_EQ(quantile(values, 0.21), 2.0);
  EXPECT_EQ(quantile(values, 0.5), 3.0);
  EXPECT_EQ(quantile(values, 0.95), 5.0);
  EXPECT_EQ(quantile(values, 1.0), 5.0);
}

TEST(Statistics, a_ratio_of_quantiles_is_narrow_where_pairs_agree) {
  std::vector<double> values;
  std::vector<double> twice;
  for (int i = 0; i < 50; ++i) {
    values.push_back(1.0 + i % 13);
    twice.push_back(2.0 * values.back());
  }
  const QuantileRatio ratio = paired_quantile_ratio(twice, values, 0.95);
  EXPECT_DOUBLE_EQ(ratio.ratio, 2.0);
  EXPECT_DOUBLE_EQ(ratio.low, 2.0);
  EXPECT_DOUBLE_EQ(ratio.high, 2.0);
  std::ranges::reverse(twice);
  const QuantileRatio apart = paired_quantile_ratio(twice, values, 0.5);
  EXPECT_DOUBLE_EQ(apart.ratio, 2.0);
  EXPECT_LT(apart.low, 2.0);
  EXPECT_GT(apart.high, 2.0);
}

}  // namespace
}  // namespace ebb
