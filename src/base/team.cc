#include "base/team.h"

#include <chrono>

#include "base/check.h"

namespace ebb {
namespace {

// Longer: cores are kept from others for nothing. Shorter: threads sleep between two products of one token, and waking one takes tens
// of microseconds.
constexpr std::chrono::microseconds kLooksFor{50};
// Of looks between two readings of the clock.
constexpr int kLooksAtOnce = 32;

constexpr std::uint64_t kOnePiece = std::uint64_t{1} << 32;
constexpr std::uint64_t kPartsMask = kOnePiece - 1;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Whether it came to be while it was looked for.
bool look_for(const auto& is_there) {
  const auto end = std::chrono::steady_clock::now() + kLooksFor;
  do {
    for (int i = 0; i < kLooksAtOnce; ++i) {
      if (is_there()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

Team::Team(std::int32_t n_threads) {
  EBB_CHECK(n_threads >= 1, "{} threads", n_threads);
  for (std::int32_t i = 1; i < n_threads; ++i) threads_.emplace_back([this] { serve(); });
}

Team::~Team() {
  ends_.store(true);
  n_calls_.fetch_add(1);
  n_calls_.notify_all();
}

void Team::run_parts(std::int32_t n_parts, const Task& task) {
  if (n_parts <= 0) return;
  if (n_parts == 1 || threads_.empty()) {
    for (std::int32_t part = 0; part < n_parts; ++part) task.call(task.work, part);
    return;
  }
  task_ = task;
  n_parts_ = n_parts;
  n_done_.store(0, std::memory_order_relaxed);
  const std::uint64_t piece = (left_.load(std::memory_order_relaxed) / kOnePiece + 1) * kOnePiece;
  // In one order with n_asleep_: either a thread that goes to sleep sees the work, or it is seen asleep here.
  left_.store(piece + static_cast<std::uint64_t>(n_parts), std::memory_order_seq_cst);
  if (n_asleep_.load(std::memory_order_seq_cst) > 0) {
    n_calls_.fetch_add(1);
    n_calls_.notify_all();
  }
  while (do_part()) {}
  const auto is_done = [&] { return n_done_.load(std::memory_order_acquire) == n_parts; };
  if (look_for(is_done)) return;
  caller_sleeps_.store(true, std::memory_order_seq_cst);
  for (std::int32_t done = n_done_.load(std::memory_order_seq_cst); done != n_parts;
       done = n_done_.load(std::memory_order_seq_cst)) {
    n_done_.wait(done);
  }
  caller_sleeps_.store(false, std::memory_order_relaxed);
}

// False when no part is left to take.
bool Team::do_part() {
  std::uint64_t left = left_.load(std::memory_order_acquire);
  do {
    if ((left & kPartsMask) == 0) return false;
  } while (!left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel, std::memory_order_acquire));
  // Until this part is done the piece is the one under way, and what describes it stays.
  const std::int32_t n_parts = n_parts_;
  task_.call(task_.work, n_parts - static_cast<std::int32_t>(left & kPartsMask));
  const std::int32_t n_done = n_done_.fetch_add(1, std::memory_order_seq_cst) + 1;
  if (n_done == n_parts && caller_sleeps_.load(std::memory_order_seq_cst)) n_done_.notify_all();
  return true;
}

void Team::serve() {
  while (!ends_.load(std::memory_order_relaxed)) {
    if (!do_part()) wait_for_work();
  }
}

void Team::wait_for_work() {
  const auto is_there = [this] {
    return (left_.load(std::memory_order_acquire) & kPartsMask) != 0 || ends_.load(std::memory_order_relaxed);
  };
  if (look_for(is_there)) return;
  const std::int32_t n_calls = n_calls_.load();
  n_asleep_.fetch_add(1, std::memory_order_seq_cst);
  if ((left_.load(std::memory_order_seq_cst) & kPartsMask) == 0 && !ends_.load()) n_calls_.wait(n_calls);
  n_asleep_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace ebb
