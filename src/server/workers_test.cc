#include "server/workers.h"

#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ebb {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Workers::Most kMany = {.all = 100, .of_owner = 100};

// Work that lasts until it is let go.
class LongWork {
 public:
  [[nodiscard]] std::function<void()> work() const {
    return [state = state_] {
      state->begun.count_down();
      state->end.wait();
    };
  }
  void wait_until_begun() const { state_->begun.wait(); }
  void end() const { state_->end.count_down(); }

 private:
  struct State {
    std::latch begun{1};
    std::latch end{1};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

std::shared_future<void> post_short(Workers& workers, std::string_view owner, std::size_t n_bytes = 0) {
  auto done = std::make_shared<std::promise<void>>();
  EXPECT_EQ(workers.post(
                owner, n_bytes, [done] { done->set_value(); }, kMany),
            Workers::Room::kTaken);
  return done->get_future().share();
}

TEST(Workers, long_work_holds_nobody_while_there_may_be_more_threads) {
  LongWork one;
  LongWork two;
  Workers workers({.n_threads = 2, .n_most = 4});
  workers.post("a", 0, one.work(), kMany);
  workers.post("a", 0, two.work(), kMany);
  one.wait_until_begun();
  two.wait_until_begun();
  EXPECT_EQ(post_short(workers, "a").wait_for(seconds(30)), std::future_status::ready);
  one.end();
  two.end();
  // The places of those that were held up are taken again, and again.
  for (int i = 0; i < 5; ++i) {
    LongWork more;
    workers.post("a", 0, more.work(), kMany);
    more.wait_until_begun();
    EXPECT_EQ(post_short(workers, "a").wait_for(seconds(30)), std::future_status::ready);
    more.end();
  }
}

TEST(Workers, there_are_no_more_threads_than_may_be) {
  LongWork one;
  LongWork two;
  Workers workers({.n_threads = 1, .n_most = 2});
  workers.post("a", 0, one.work(), kMany);
  workers.post("a", 0, two.work(), kMany);
  one.wait_until_begun();
  two.wait_until_begun();
  const std::shared_future<void> third = post_short(workers, "b");
  EXPECT_EQ(third.wait_for(milliseconds(100)), std::future_status::timeout);
  one.end();
  EXPECT_EQ(third.wait_for(seconds(30)), std::future_status::ready);
  two.end();
}

TEST(Workers, owners_with_as_many_at_work_come_in_order) {
  LongWork one;
  std::mutex mutex;
  std::vector<std::string> order;
  std::latch all(3);
  Workers workers({.n_threads = 1, .n_most = 1});
  workers.post("", 0, one.work(), kMany);
  one.wait_until_begun();
  const auto say = [&](const char* what) {
    return [&, what] {
      const std::scoped_lock lock(mutex);
      order.emplace_back(what);
      all.count_down();
    };
  };
  workers.post("a", 0, say("a"), kMany);
  workers.post("a", 0, say("a"), kMany);
  workers.post("b", 0, say("b"), kMany);
  one.end();
  all.wait();
  EXPECT_EQ(order, (std::vector<std::string>{"a", "a", "b"}));
}

TEST(Workers, an_owner_at_work_lets_another_pass) {
  LongWork of_a;
  LongWork other;
  Workers workers({.n_threads = 2, .n_most = 2});
  workers.post("a", 0, of_a.work(), kMany);
  workers.post("c", 0, other.work(), kMany);
  of_a.wait_until_begun();
  other.wait_until_begun();
  LongWork next_of_a;
  workers.post("a", 0, next_of_a.work(), kMany);
  const std::shared_future<void> of_b = post_short(workers, "b");
  other.end();
  EXPECT_EQ(of_b.wait_for(seconds(30)), std::future_status::ready);
  next_of_a.wait_until_begun();
  next_of_a.end();
  of_a.end();
}

TEST(Workers, large_bodies_wait_for_each_other_and_hold_no_small_ones) {
  constexpr std::size_t kLarge = std::size_t{64} << 20U;
  LongWork large;
  Workers workers({.n_threads = 2, .n_most = 2});
  workers.post("a", kLarge, large.work(), kMany);
  large.wait_until_begun();
  const std::shared_future<void> second = post_short(workers, "a", kLarge);
  const std::shared_future<void> third = post_short(workers, "b", std::size_t{2} << 20U);
  EXPECT_EQ(post_short(workers, "a", 1000).wait_for(seconds(30)), std::future_status::ready);
  EXPECT_EQ(second.wait_for(milliseconds(0)), std::future_status::timeout);
  EXPECT_EQ(third.wait_for(milliseconds(0)), std::future_status::timeout) << "it came later than another large one";
  large.end();
  EXPECT_EQ(second.wait_for(seconds(30)), std::future_status::ready);
  EXPECT_EQ(third.wait_for(seconds(30)), std::future_status::ready);
}

TEST(Workers, what_is_too_much_is_not_taken) {
  LongWork one;
  Workers workers({.n_threads = 1, .n_most = 1});
  workers.post("a", 0, one.work(), kMany);
  one.wait_until_begun();
  const Workers::Most most = {.all = 3, .of_owner = 2};
  EXPECT_EQ(workers.post(
                "a", 0, [] {}, most),
            Workers::Room::kTaken);
  EXPECT_EQ(workers.post(
                "a", 0, [] {}, most),
            Workers::Room::kTaken);
  EXPECT_EQ(workers.post(
                "a", 0, [] {}, most),
            Workers::Room::kNoneOfOwner);
  EXPECT_EQ(workers.post(
                "b", 0, [] {}, most),
            Workers::Room::kTaken);
  EXPECT_EQ(workers.post(
                "b", 0, [] {}, most),
            Workers::Room::kNone);
  one.end();
}

}  // namespace
}  // namespace ebb
