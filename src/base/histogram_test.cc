#include "base/histogram.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

constexpr std::array kBounds = {0.1, 1.0, 10.0};

TEST(Histograms, a_value_counts_in_the_first_bucket_whose_bound_it_does_not_exceed) {
  Histogram histogram(kBounds);
  for (const double value : {0.0, 0.1, 0.11, 1.0, 9.0, 10.0, 10.5, 1e9}) histogram.add(value);
  EXPECT_EQ(histogram.n_in(0), 2);
  EXPECT_EQ(histogram.n_in(1), 2);
  EXPECT_EQ(histogram.n_in(2), 2);
  EXPECT_EQ(histogram.n_in(3), 2) << "what exceeds all bounds";
  EXPECT_EQ(histogram.n(), 8);
  EXPECT_DOUBLE_EQ(histogram.sum(), 0.0 + 0.1 + 0.11 + 1.0 + 9.0 + 10.0 + 10.5 + 1e9);
}

TEST(Histograms, one_that_nothing_was_added_to_is_empty) {
  const Histogram histogram(kBounds);
  EXPECT_EQ(histogram.n(), 0);
  EXPECT_EQ(histogram.sum(), 0.0);
  EXPECT_EQ(histogram.bounds().size(), 3U);
}

}  // namespace
}  // namespace ebb
