#include "store/work_thread.h"

#include <atomic>
#include <latch>
#include <vector>

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(WorkThread, runs_tasks_in_order) {
  std::vector<int> order;
  std::latch may_start(1);
  WorkThread worker(1000);
  worker.push(1, [&] { may_start.wait(); });
  worker.push(1, [&] { order.push_back(1); });
  worker.push(1, [&] { order.push_back(2); });
  EXPECT_EQ(worker.cost(), 3U);
  may_start.count_down();
  worker.wait_idle();
  EXPECT_EQ(order, (std::vector{1, 2}));
  EXPECT_EQ(worker.cost(), 0U);
}

TEST(WorkThread, tells_who_does_not_wait_that_the_queue_is_full) {
  std::latch may_finish(1);
  bool ran = false;
  WorkThread worker(10);
  EXPECT_TRUE(worker.try_push(8, [&] { may_finish.wait(); }));
  EXPECT_FALSE(worker.try_push(3, [] {}));
  EXPECT_TRUE(worker.try_push(2, [&] { ran = true; }));
  may_finish.count_down();
  worker.wait_idle();
  EXPECT_TRUE(ran);
}

TEST(WorkThread, makes_who_pushes_wait_while_the_queue_is_full) {
  std::latch may_finish(1);
  std::atomic<bool> first_done = false;
  std::atomic<bool> first_was_done = false;
  WorkThread worker(10);
  worker.push(8, [&] {
    may_finish.wait();
    first_done = true;
  });
  std::thread pusher([&] {
    worker.push(8, [] {});
    first_was_done = first_done.load();
  });
  may_finish.count_down();
  pusher.join();
  EXPECT_TRUE(first_was_done);
}

TEST(WorkThread, takes_a_task_larger_than_the_queue_when_it_is_alone) {
  WorkThread worker(10);
  bool ran = false;
  worker.push(1000, [&] { ran = true; });
  worker.wait_idle();
  EXPECT_TRUE(ran);
}

TEST(WorkThread, finishes_what_was_pushed_before_it_dies) {
  int n_ran = 0;
  {
    WorkThread worker(1000);
    for (int i = 0; i < 100; ++i) worker.push(1, [&] { ++n_ran; });
  }
  EXPECT_EQ(n_ran, 100);
}

}  // namespace
}  // namespace ebb
