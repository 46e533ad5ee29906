// ByteRoom: bytes that several may take, up to a limit. Thread rule: any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ebb {

class ByteRoom {
 public:
  explicit ByteRoom(std::size_t n_bytes) : limit_(n_bytes) {}
  [[nodiscard]] std::size_t limit() const { return limit_; }
  [[nodiscard]] std::size_t used() const { return used_.load(); }
  // False where there are not so many left.
  bool take(std::size_t n_bytes) {
    std::size_t used = used_.load();
    while (n_bytes <= limit_ - std::min(used, limit_)) {
      if (used_.compare_exchange_weak(used, used + n_bytes)) return true;
    }
    return false;
  }
  void give_back(std::size_t n_bytes) { used_.fetch_sub(n_bytes); }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> used_{0};
};

}  // namespace ebb
