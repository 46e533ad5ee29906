// HttpFloor: what all connections of a server share: its options, its handler, its counters, and the list of who is there.
//
// It does not know sockets or threads; a connection is a guest that can be asked to go. Thread rule: any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "server/body_shares.h"
#include "server/http.h"

namespace ebb {

class HttpGuest {
 public:
  virtual ~HttpGuest() = default;
  virtual void end_soon() = 0;  // once its answer is complete
  virtual void end_now() = 0;
};

struct HttpTally {
  std::atomic<std::uint64_t> n_accepted = 0;
  std::atomic<std::uint64_t> n_turned_away = 0;
  std::atomic<std::uint64_t> n_accept_failures = 0;
  std::atomic<std::uint64_t> n_requests = 0;
  std::atomic<std::uint64_t> n_refused = 0;
  std::atomic<std::uint64_t> n_left = 0;
  std::atomic<std::uint64_t> n_too_slow = 0;
  std::atomic<std::uint64_t> n_failures = 0;
  std::atomic<std::uint64_t> body_bytes = 0;
};

class HttpFloor {
 public:
  enum class Seat : std::uint8_t { kServed, kTurnedAway, kNone };
  // Clients that are being told "503" beside max_connections; more are closed without a word.
  static constexpr std::size_t kMostTurnedAway = 64;

  HttpFloor(HttpOptions given, HttpHandler handle)
      : options(std::make_shared<const HttpOptions>(std::move(given))), handler(std::move(handle)) {}

  // Those who are told to come back have places of their own, or they would keep out those whom they made room for.
  [[nodiscard]] Seat enter(const std::shared_ptr<HttpGuest>& guest) {
    const std::lock_guard lock(mutex_);
    const std::size_t n_served = guests_.size() - n_turned_away_;
    Seat seat = Seat::kServed;
    if (stopping()) {
      seat = Seat::kNone;
    } else if (n_served >= options->max_connections) {
      ++tally.n_turned_away;
      seat = n_turned_away_ < kMostTurnedAway ? Seat::kTurnedAway : Seat::kNone;
    }
    if (seat != Seat::kNone) guests_.emplace(guest.get(), Place{guest, seat});
    if (seat == Seat::kTurnedAway) ++n_turned_away_;
    return seat;
  }
  void leave(const HttpGuest& guest) {
    const std::lock_guard lock(mutex_);
    const auto found = guests_.find(&guest);
    if (found == guests_.end()) return;
    if (found->second.seat == Seat::kTurnedAway) --n_turned_away_;
    guests_.erase(found);
    if (guests_.empty()) empty_.notify_all();
  }
  [[nodiscard]] std::size_t n_guests() const {
    const std::lock_guard lock(mutex_);
    return guests_.size();
  }

  [[nodiscard]] bool stopping() const { return stopping_.load(); }
  // Lets nobody in any more, asks all to end, waits for them for `grace`, then tells them to, and waits again.
  void empty(std::chrono::milliseconds grace) {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    for (const auto& [key, place] : guests_) place.guest->end_soon();
    if (empty_.wait_for(lock, grace, [this] { return guests_.empty(); })) return;
    for (const auto& [key, place] : guests_) place.guest->end_now();
    empty_.wait(lock, [this] { return guests_.empty(); });
  }

  const std::shared_ptr<const HttpOptions> options;
  const HttpHandler handler;
  HttpTally tally;
  BodyShares body_shares;

 private:
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::condition_variable empty_;
  struct Place {
    std::shared_ptr<HttpGuest> guest;
    Seat seat = Seat::kNone;
  };
  std::unordered_map<const HttpGuest*, Place> guests_;
  std::size_t n_turned_away_ = 0;  // of guests_
};

}  // namespace ebb
