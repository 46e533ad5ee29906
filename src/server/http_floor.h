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
  std::atomic<std::uint64_t> n_handler_failures = 0;
  std::atomic<std::uint64_t> body_bytes = 0;
};

class HttpFloor {
 public:
  HttpFloor(HttpOptions given, HttpHandler handle)
      : options(std::make_shared<const HttpOptions>(std::move(given))), handler(std::move(handle)) {}

  // False when the server is stopping: the guest does not get in.
  [[nodiscard]] bool enter(const std::shared_ptr<HttpGuest>& guest) {
    const std::lock_guard lock(mutex_);
    if (stopping()) return false;
    guests_.emplace(guest.get(), guest);
    return true;
  }
  void leave(const HttpGuest& guest) {
    const std::lock_guard lock(mutex_);
    guests_.erase(&guest);
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
    for (const auto& [key, guest] : guests_) guest->end_soon();
    if (empty_.wait_for(lock, grace, [this] { return guests_.empty(); })) return;
    for (const auto& [key, guest] : guests_) guest->end_now();
    empty_.wait(lock, [this] { return guests_.empty(); });
  }

  const std::shared_ptr<const HttpOptions> options;
  const HttpHandler handler;
  HttpTally tally;

 private:
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::condition_variable empty_;
  std::unordered_map<const HttpGuest*, std::shared_ptr<HttpGuest>> guests_;
};

}  // namespace ebb
