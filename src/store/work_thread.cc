#include "store/work_thread.h"

#include <utility>

namespace ebb {

WorkThread::WorkThread(std::size_t max_cost) : max_cost_(max_cost), thread_([this] { run(); }) {}

WorkThread::~WorkThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WorkThread::push(std::size_t cost, std::function<void()> task) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return cost_ == 0 || cost_ + cost <= max_cost_; });
    cost_ += cost;
    tasks_.push_back({cost, std::move(task)});
  }
  changed_.notify_all();
}

bool WorkThread::try_push(std::size_t cost, std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (cost_ > 0 && cost_ + cost > max_cost_) return false;
    cost_ += cost;
    tasks_.push_back({cost, std::move(task)});
  }
  changed_.notify_all();
  return true;
}

void WorkThread::wait_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return tasks_.empty() && !running_; });
}

std::size_t WorkThread::cost() const {
  const std::lock_guard lock(mutex_);
  return cost_;
}

void WorkThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    running_ = true;
    lock.unlock();
    task.run();
    task.run = nullptr;  // what it holds goes before its cost does
    lock.lock();
    running_ = false;
    cost_ -= task.cost;
    changed_.notify_all();
  }
}

}  // namespace ebb
