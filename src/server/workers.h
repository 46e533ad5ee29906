// Workers: a few threads for what is too slow for the thread that reads sockets and is not the engine's work: rendering and
// tokenizing prompts. Thread rule: post() from any thread; what is posted must not throw.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
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

  // False when `most` wait already.
  bool post(std::function<void()> work, std::size_t most) {
    const std::scoped_lock lock(mutex_);
    if (waiting_.size() >= most) return false;
    waiting_.push_back(std::move(work));
    changed_.notify_one();
    return true;
  }

 private:
  void work(const std::stop_token& stop) {
    while (true) {
      std::function<void()> next;
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return !waiting_.empty(); }) || stop.stop_requested()) return;
        next = std::move(waiting_.front());
        waiting_.pop_front();
      }
      next();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> waiting_;
  // Last, so that they are joined before anything above goes.
  std::vector<std::jthread> threads_;
};

}  // namespace ebb
