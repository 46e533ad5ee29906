#include "engine/request_queue.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

WaitingRequest asks(RequestId id, std::string owner, std::string lane_id = "") {
  WaitingRequest waiting{.id = id};
  waiting.request.owner = std::move(owner);
  waiting.request.lane_id = std::move(lane_id);
  return waiting;
}

RequestId next_id(RequestQueue& queue, std::initializer_list<const Request*> at_work) {
  const std::vector<const Request*> all(at_work);
  const std::optional<WaitingRequest> next = queue.take_next(all);
  return next ? next->id : 0;
}

TEST(RequestQueue, the_owner_with_the_fewest_at_work_is_next_the_longest_waiting_first) {
  const WaitingRequest ann = asks(9, "ann");
  RequestQueue queue({});
  queue.push(asks(1, "ann"));
  queue.push(asks(2, "bob"));
  queue.push(asks(3, "bob"));
  EXPECT_EQ(next_id(queue, {&ann.request}), 2);
  EXPECT_EQ(next_id(queue, {}), 1);
  EXPECT_EQ(next_id(queue, {}), 3);
  EXPECT_EQ(next_id(queue, {}), 0);
}

TEST(RequestQueue, what_wants_a_lane_at_work_or_one_too_many_of_its_owner_waits_on) {
  const WaitingRequest ann = asks(9, "ann", "chat");
  RequestQueue queue({.n_parallel_of_owner = 2});
  queue.push(asks(1, "ann", "chat"));
  queue.push(asks(2, "ann", "other"));
  EXPECT_EQ(next_id(queue, {&ann.request, &ann.request}), 0);
  EXPECT_EQ(next_id(queue, {&ann.request}), 2);
  EXPECT_EQ(next_id(queue, {&ann.request}), 0);
  EXPECT_EQ(queue.size(), 1);
}

TEST(RequestQueue, says_when_all_or_one_owners_may_not_wait) {
  RequestQueue queue({.most = 3, .most_of_owner = 2});
  queue.push(asks(1, "ann"));
  queue.push(asks(2, "ann"));
  EXPECT_EQ(queue.check_room("ann").code(), Code::kOutOfBudget);
  EXPECT_TRUE(queue.check_room("bob").ok());
  queue.push(asks(3, "bob"));
  EXPECT_EQ(queue.check_room("cid").code(), Code::kOutOfBudget);
  EXPECT_EQ(queue.take({1, 3, 7}).size(), 2);
  EXPECT_EQ(queue.take_all().size(), 1);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace ebb
