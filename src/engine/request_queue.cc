#include "engine/request_queue.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ebb {

Status RequestQueue::check_room(std::string_view owner) const {
  if (waiting_.size() >= limits_.most) {
    return error(Code::kOutOfBudget, "{} requests are waiting, as many as may; try again later", waiting_.size());
  }
  const auto n_own = static_cast<std::size_t>(
      std::ranges::count(waiting_, owner, [](const WaitingRequest& w) -> std::string_view { return w.request.owner; }));
  if (n_own >= limits_.most_of_owner) {
    return error(Code::kOutOfBudget, "{} requests of this key are waiting, as many as may; try again later", n_own);
  }
  return {};
}

std::optional<WaitingRequest> RequestQueue::take_next(std::span<const Request* const> at_work) {
  std::map<std::string_view, std::int32_t> n_at_work;
  for (const Request* request : at_work) ++n_at_work[request->owner];
  const auto lane_is_free = [&](const Request& candidate) {
    return candidate.lane_id.empty() || std::ranges::none_of(at_work, [&](const Request* request) {
             return request->owner == candidate.owner && request->lane_id == candidate.lane_id;
           });
  };
  auto best = waiting_.end();
  std::int32_t n_of_best = limits_.n_parallel_of_owner;
  for (auto candidate = waiting_.begin(); candidate != waiting_.end(); ++candidate) {
    const auto own = n_at_work.find(candidate->request.owner);
    const std::int32_t n_own = own == n_at_work.end() ? 0 : own->second;
    if (n_own >= n_of_best || !lane_is_free(candidate->request)) continue;
    best = candidate;
    n_of_best = n_own;
  }
  if (best == waiting_.end()) return std::nullopt;
  WaitingRequest next = std::move(*best);
  waiting_.erase(best);
  return next;
}

std::vector<WaitingRequest> RequestQueue::take(const std::set<RequestId>& ids) {
  std::vector<WaitingRequest> taken;
  for (WaitingRequest& request : waiting_) {
    if (ids.contains(request.id)) taken.push_back(std::move(request));
  }
  std::erase_if(waiting_, [&](const WaitingRequest& request) { return ids.contains(request.id); });
  return taken;
}

std::vector<WaitingRequest> RequestQueue::take_all() { return std::exchange(waiting_, {}); }

}  // namespace ebb
