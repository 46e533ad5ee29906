// RequestQueue: the requests that wait, and which of them is next.
//
// Bounded, of all owners and of each. Fair between owners: the one with the fewest requests at work is next, the longest
// waiting first. It does not know sessions, frames or steps; what is at work it is told. Thread rule: one thread at a time
// (the scheduler's lock).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "engine/request.h"

namespace ebb {

struct QueueLimits {
  std::size_t most = 64;
  std::size_t most_of_owner = 64;
  // At work at once, of one owner.
  std::int32_t n_parallel_of_owner = 256;
};

struct WaitingRequest {
  RequestId id = 0;
  Request request;
  Stopwatch since;
};

class RequestQueue {
 public:
  explicit RequestQueue(const QueueLimits& limits) : limits_(limits) {}

  // What waits and what is at work stays, however many they are.
  void set_owner_limits(std::size_t most, std::int32_t n_parallel) {
    limits_.most_of_owner = most;
    limits_.n_parallel_of_owner = n_parallel;
  }
  [[nodiscard]] std::size_t size() const { return waiting_.size(); }
  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  // kOutOfBudget where one more of this owner's may not wait.
  [[nodiscard]] Status check_room(std::string_view owner) const;
  void push(WaitingRequest request) { waiting_.push_back(std::move(request)); }

  // None where each that waits wants a lane that is at work, or its owner may have no more at work.
  [[nodiscard]] std::optional<WaitingRequest> take_next(std::span<const Request* const> at_work);
  [[nodiscard]] std::vector<WaitingRequest> take(const std::set<RequestId>& ids);
  [[nodiscard]] std::vector<WaitingRequest> take_all();

 private:
  QueueLimits limits_;
  std::vector<WaitingRequest> waiting_;  // the longest first
};

}  // namespace ebb
