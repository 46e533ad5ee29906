// Gate: where threads of the code under test wait until the test lets them on: a slow disk whose slowness is the test's to
// say, without a clock. Open at first. Thread rule: any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace ebb {

class Gate {
 public:
  // Waits while the gate is closed.
  void pass() {
    std::unique_lock lock(mutex_);
    ++n_waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_open_; });
    --n_waiting_;
  }
  void close() { set(false); }
  void open() { set(true); }
  // Until somebody waits at it, which must be closed.
  void wait_for_one() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return n_waiting_ > 0; });
  }

 private:
  void set(bool is_open) {
    const std::lock_guard lock(mutex_);
    is_open_ = is_open;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
  std::int32_t n_waiting_ = 0;
};

}  // namespace ebb
