// The scheduler between owners and conversations: what each may have of what all share, and what is counted of all.
#include <atomic>
#include <future>
#include <latch>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scheduler_fixture.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

TEST_F(Schedulers, one_owner_may_not_fill_the_queue) {
  start({.n_parallel = 1, .max_queued = 3, .max_queued_of_owner = 1});
  std::latch looked{1};
  std::promise<void> go;
  std::jthread holder([&] {
    scheduler_->inspect([&](const Lanes&) {
      looked.count_down();
      go.get_future().wait();
    });
  });
  looked.wait();
  std::future<Said> first = submit(request("hello", "alpha"));
  EXPECT_THAT(scheduler_->submit(request("one more", "alpha")).status().message(), HasSubstr("of this key"));
  std::future<Said> other = submit(request("hello", "beta"));
  go.set_value();
  EXPECT_TRUE(first.get().end.status.ok());
  EXPECT_TRUE(other.get().end.status.ok());
}

TEST_F(Schedulers, an_owner_with_one_request_at_a_time_waits_for_its_own_and_not_for_others) {
  start({.n_parallel = 2, .n_parallel_of_owner = 1});
  std::atomic<int> n_alpha{0};
  std::atomic<bool> together{false};
  std::vector<std::future<Said>> all;
  for (int i = 0; i < 3; ++i) {
    Request one = request(letters(40, static_cast<char>('a' + i)), "alpha");
    const auto begun = std::make_shared<bool>(false);
    auto promise = std::make_shared<std::promise<Said>>();
    all.push_back(promise->get_future());
    one.on_text = [&, begun](std::string_view) {
      if (!std::exchange(*begun, true) && ++n_alpha > 1) together = true;
    };
    one.on_end = [&, begun, promise](const RequestEnd& end) {
      if (*begun) --n_alpha;
      promise->set_value({"", end});
    };
    ASSERT_TRUE(scheduler_->submit(std::move(one)).ok());
  }
  for (auto& one : all) EXPECT_TRUE(one.get().end.status.ok());
  EXPECT_FALSE(together);
}

TEST_F(Schedulers, an_owner_with_as_many_sessions_as_it_may_have_loses_its_own_and_nobody_elses) {
  start({.lanes = {.most = 3, .most_of_owner = 1}});
  say(request("hello", "beta", "b"));
  say(request("hello", "alpha", "a1"));
  say(request("hello", "alpha", "a2"));
  scheduler_->inspect([](const Lanes& lanes) {
    std::vector<std::string> ids;
    for (const Lane& lane : lanes.all()) ids.push_back(lane.public_id);
    EXPECT_THAT(ids, ::testing::ElementsAre("b", "a2"));
  });
}

TEST_F(Schedulers, where_there_are_as_many_sessions_as_may_be_whoever_has_most_makes_room) {
  start({.lanes = {.most = 4}});
  say(request("hello", "beta", "b"));
  for (const char* lane : {"a1", "a2", "a3"}) say(request("hello", "alpha", lane));
  const auto ids = [&] {
    std::vector<std::string> all;
    scheduler_->inspect([&](const Lanes& lanes) {
      for (const Lane& lane : lanes.all()) all.push_back(lane.public_id);
    });
    return all;
  };
  say(request("hello", "gamma", "c"));
  EXPECT_THAT(ids(), ::testing::ElementsAre("b", "a2", "a3", "c")) << "the oldest of all is another's";
  say(request("hello", "gamma", "c2"));
  EXPECT_THAT(ids(), ::testing::ElementsAre("b", "a3", "c", "c2"));
  say(request("hello", "gamma", "c3"));
  EXPECT_THAT(ids(), ::testing::ElementsAre("b", "a3", "c2", "c3")) << "with what it asks for it has most itself";
}

TEST_F(Schedulers, what_an_owner_may_have_changes_while_others_are_served) {
  start({.n_parallel = 1});
  for (const char* lane : {"a1", "a2", "a3"}) say(request("hello", "alpha", lane));
  scheduler_->set_owner_limits({.n_parallel = 1, .max_queued = 1, .most_lanes = 2});
  say(request("hello", "alpha", "a4"));
  scheduler_->inspect([](const Lanes& lanes) { EXPECT_EQ(lanes.all().size(), 2U); });
}

// A key that was taken away has sessions, and nobody who could ask for them.
TEST_F(Schedulers, whom_nobody_knows_any_more_makes_room_first) {
  start({.lanes = {.most = 4}});
  for (const char* lane : {"a1", "a2", "a3"}) say(request("hello", "alpha", lane));
  say(request("hello", "beta", "b"));
  scheduler_->set_owner_limits({.is_known = [](std::string_view owner) { return owner != "beta"; }});
  say(request("hello", "gamma", "c"));
  std::vector<std::string> ids;
  scheduler_->inspect([&](const Lanes& lanes) {
    for (const Lane& lane : lanes.all()) ids.push_back(lane.public_id);
  });
  EXPECT_THAT(ids, ::testing::ElementsAre("a1", "a2", "a3", "c"));
}

TEST_F(Schedulers, how_long_clients_wait_is_counted_once_for_each_request_and_each_token) {
  start({.n_parallel = 1});
  const Said one = say(request("hello", "", "a", 6));
  const Said two = say(request("hello there", "", "b", 6));
  const Latencies told = scheduler_->stats().latencies;
  EXPECT_EQ(told.queue.n(), 2);
  EXPECT_EQ(told.first_token.n(), 2);
  EXPECT_EQ(told.next_token.n(), one.end.stats.n_generated + two.end.stats.n_generated - 2);
  EXPECT_GE(told.first_token.sum(), told.queue.sum());
}

TEST_F(Schedulers, requests_of_one_hint_run_together_and_keep_what_each_was_told) {
  start({.n_parallel = 3});
  const auto asked = [&](char letter) {
    Request made = request(letters(40, 's') + letters(100, letter));
    made.lane_hint = "all";
    return made;
  };
  std::vector<std::future<Said>> together;
  for (const char letter : {'a', 'b', 'c'}) together.push_back(submit(asked(letter)));
  for (auto& one : together) EXPECT_TRUE(one.get().end.status.ok());
  EXPECT_EQ(scheduler_->stats().n_lanes, 3U);
  for (const char letter : {'a', 'b', 'c'}) EXPECT_EQ(say(asked(letter)).end.turn.from[Origin::kNew], 1);
  EXPECT_EQ(scheduler_->stats().n_lanes, 3U);
}

}  // namespace
}  // namespace ebb
