// Workers: a few threads for what is too slow for the thread that reads sockets and is not the engine's work: rendering and
// tokenizing prompts. Thread rule: post() from any thread; what is posted must not throw.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace ebb {

class Workers {
 public:
  explicit Workers(int n_threads) {
    for (int i = 0; i < n_threads; ++i) threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
  // What waits is dropped.
  ~Workers() {
    for (std::jthread& thread : threads_) thread.request_stop();
    changed_.notify_all();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  enum class Room : std::uint8_t { kTaken, kNone, kNoneOfOwner };
  struct Most {
    std::size_t all = 0;
    std::size_t of_owner = 0;
  };
  // Nothing is posted where as many wait already as may, of all or of this owner's.
  Room post(std::string_view owner, std::function<void()> work, const Most& most) {
    const std::scoped_lock lock(mutex_);
    if (waiting_.size() >= most.all) return Room::kNone;
    if (std::cmp_greater_equal(std::ranges::count(waiting_, owner, &Waiting::owner), most.of_owner)) {
      return Room::kNoneOfOwner;
    }
    waiting_.push_back({.owner = std::string(owner), .work = std::move(work)});
    changed_.notify_one();
    return Room::kTaken;
  }

 private:
  struct Waiting {
    std::string owner;
    std::function<void()> work;
  };

  void work(const std::stop_token& stop) {
    while (true) {
      std::function<void()> next;
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return !waiting_.empty(); }) || stop.stop_requested()) return;
        next = std::move(waiting_.front().work);
        waiting_.pop_front();
      }
      next();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Waiting> waiting_;
  // Last, so that they are joined before anything above goes.
  std::vector<std::jthread> threads_;
};

}  // namespace ebb
