#include "bench/busy_cores.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace ebb {
namespace {

// Looks until that much more was run, or a minute is over: other programs may have the cores.
double run_more(const BusyCores& busy, double more) {
  const double before = busy.seconds_run();
  const Stopwatch watch;
  while (busy.seconds_run() < before + more && watch.elapsed_ms() < 60'000.0) {}
  return busy.seconds_run() - before;
}

TEST(BusyCores, run_while_they_are_resumed_and_stand_still_while_they_are_paused) {
  auto busy = BusyCores::start(2);
  ASSERT_TRUE(busy.ok()) << busy.status().message();
  EXPECT_EQ(busy->n_cores(), 2);
  EXPECT_LT(busy->seconds_run(), 0.05) << "paused at first";
  busy->resume();
  EXPECT_GE(run_more(*busy, 0.02), 0.02);
  busy->pause();
  const double before = busy->seconds_run();
  const Stopwatch pause;
  while (pause.elapsed_ms() < 20.0) {}
  EXPECT_EQ(busy->seconds_run(), before);
  busy->resume();
  EXPECT_GE(run_more(*busy, 0.02), 0.02) << "resumed once more";
}

TEST(BusyCores, none_is_none) {
  auto busy = BusyCores::start(0);
  ASSERT_TRUE(busy.ok());
  busy->resume();
  EXPECT_EQ(busy->seconds_run(), 0.0);
}

}  // namespace
}  // namespace ebb
