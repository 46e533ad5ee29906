// WorkThread: one thread that runs tasks in order, behind a queue of bounded cost.
//
// It does not know what the tasks do. A full queue makes who pushes wait (back-pressure), so that what is behind never
// takes more memory than was allowed. Thread rule: any thread may call anything, except that a task must not push to
// the thread that runs it, nor wait for it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace ebb {

class WorkThread {
 public:
  // A task that costs more than max_cost by itself waits until it is alone.
  explicit WorkThread(std::size_t max_cost);
  // Runs what was pushed to its end.
  ~WorkThread();
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;

  // Waits while the tasks that are not done yet and this one together cost more than max_cost.
  void push(std::size_t cost, std::function<void()> task);
  // Pushes without waiting: false, and nothing is pushed, where push() would wait.
  [[nodiscard]] bool try_push(std::size_t cost, std::function<void()> task);
  // Until everything pushed is done.
  void wait_idle();
  // The cost of the tasks that are not done yet.
  [[nodiscard]] std::size_t cost() const;

 private:
  struct Task {
    std::size_t cost = 0;
    std::function<void()> run;
  };

  void run();

  const std::size_t max_cost_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::size_t cost_ = 0;
  bool running_ = false;
  bool stop_ = false;
  std::thread thread_;  // last: it starts when all else is there
};

}  // namespace ebb
