#include "base/for_each_parallel.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(ForEachParallel, does_each_once_with_any_number_of_threads) {
  for (const int n_threads : {-1, 0, 1, 2, 7, 100}) {
    for (const std::size_t n : {0U, 1U, 5U, 40U}) {
      std::vector<std::atomic<int>> done(n);
      for_each_parallel(n, n_threads, [&](std::size_t i) { ++done[i]; });
      for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
    }
  }
}

TEST(ForEachParallel, what_one_throws_comes_out_and_the_others_end) {
  std::atomic<int> n_done = 0;
  EXPECT_THROW(for_each_parallel(20, 3,
                                 [&](std::size_t i) {
                                   if (i == 4) throw std::runtime_error("four");
                                   ++n_done;
                                 }),
               std::runtime_error);
  EXPECT_GE(n_done, 4);
  EXPECT_LE(n_done, 19);
}

}  // namespace
}  // namespace ebb
