#include "server/workers.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

namespace ebb {
namespace {

using std::chrono::milliseconds;

// Who works longer gives the place to another. Ordinary prompts take a few milliseconds, or some tens where they have a hundred
// thousand letters.
constexpr auto kLong = milliseconds(20);
// Who takes more processor time is put back, and then gets a tenth of what others get that have work.
constexpr auto kMuchTime = milliseconds(300);
constexpr int kNicer = 10;
// Bodies that are larger are worked on together as far as they have so many bytes.
constexpr std::size_t kSmall = std::size_t{1} << 20U;
constexpr std::size_t kMostBytes = std::size_t{64} << 20U;

std::chrono::nanoseconds time_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::chrono::nanoseconds processor_time_of(std::jthread& thread) {
  clockid_t clock{};
  return ::pthread_getcpuclockid(thread.native_handle(), &clock) == 0 ? time_of(clock) : std::chrono::nanoseconds{};
}

}  // namespace

Workers::Workers(Size size) : size_(size) {
  const std::scoped_lock lock(mutex_);
  for (int i = 0; i < size_.n_threads; ++i) add_thread();
  EBB_CHECK(!threads_.empty(), "the system gives no thread to work on requests");
  if (size_.n_most > size_.n_threads) watch_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

Workers::~Workers() {
  // Joined first: only the watch changes the list of threads.
  watch_.request_stop();
  changed_.notify_all();
  if (watch_.joinable()) watch_.join();
  for (Thread& thread : threads_) thread.thread.request_stop();
  changed_.notify_all();
  // None leaves the list before all have ended: each looks at it.
  for (Thread& thread : threads_) thread.thread.join();
}

Workers::Room Workers::post(std::string_view owner, std::size_t n_bytes, std::function<void()> work, const Most& most) {
  const std::scoped_lock lock(mutex_);
  if (waiting_.size() >= most.all) return Room::kNone;
  if (std::cmp_greater_equal(std::ranges::count(waiting_, owner, &Waiting::owner), most.of_owner)) {
    return Room::kNoneOfOwner;
  }
  waiting_.push_back({.owner = std::string(owner), .n_bytes = n_bytes, .work = std::move(work)});
  changed_.notify_all();
  return Room::kTaken;
}

void Workers::add_thread() {
  Thread& added = threads_.emplace_back();
  try {
    added.thread = std::jthread([this, &added](const std::stop_token& stop) { work(stop, added); });
  } catch (const std::system_error&) {
    threads_.pop_back();
  }
}

// The first of an owner who has the fewest at work. A large body waits until there is room for it, and other large ones behind it.
std::deque<Workers::Waiting>::iterator Workers::find_next() {
  const auto is_large = [](const auto& one) { return one.n_bytes > kSmall; };
  std::size_t n_bytes = 0;
  for (const Thread& thread : threads_) {
    if (thread.is_working && is_large(thread.working)) n_bytes += thread.working.n_bytes;
  }
  const auto n_of = [&](const std::string& owner) {
    return std::ranges::count_if(
        threads_, [&](const Thread& thread) { return thread.is_working && thread.working.owner == owner; });
  };
  auto next = waiting_.end();
  std::ptrdiff_t n_next = 0;
  bool has_room = true;
  for (auto one = waiting_.begin(); one != waiting_.end(); ++one) {
    if (is_large(*one)) {
      has_room = has_room && (n_bytes == 0 || n_bytes + one->n_bytes <= kMostBytes);
      if (!has_room) continue;
    }
    const std::ptrdiff_t n = n_of(one->owner);
    if (next != waiting_.end() && n >= n_next) continue;
    next = one;
    n_next = n;
  }
  return next;
}

void Workers::work(const std::stop_token& stop, Thread& self) {
  std::unique_lock lock(mutex_);
  self.id = ::gettid();
  while (!self.is_held_up) {
    auto next = waiting_.end();
    const auto is_next = [&] { return (next = find_next()) != waiting_.end(); };
    if (!changed_.wait(lock, stop, is_next) || stop.stop_requested()) break;
    {
      // What it holds goes with it, before the lock is taken again.
      const std::function<void()> work = std::move(next->work);
      self.working = {.owner = std::move(next->owner),
                      .n_bytes = next->n_bytes,
                      .since = Clock::now(),
                      .processor_time_before = time_of(CLOCK_THREAD_CPUTIME_ID)};
      self.is_working = true;
      waiting_.erase(next);
      changed_.notify_all();
      lock.unlock();
      work();
    }
    lock.lock();
    self.is_working = false;
    changed_.notify_all();
  }
  self.has_left = true;
  changed_.notify_all();
}

bool Workers::keeps_watch() const {
  return std::ranges::any_of(
      threads_, [](const Thread& thread) { return thread.has_left || (thread.is_working && !thread.is_put_back); });
}

void Workers::hold_up(Clock::time_point now) {
  for (Thread& thread : threads_) {
    if (!thread.is_working) continue;
    thread.is_held_up |= now - thread.working.since >= kLong;
    if (thread.is_put_back || !thread.is_held_up) continue;
    if (processor_time_of(thread.thread) - thread.working.processor_time_before < kMuchTime) continue;
    thread.is_put_back = true;
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(thread.id), kNicer);
  }
}

void Workers::watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return keeps_watch(); }) && !stop.stop_requested()) {
    changed_.wait_for(lock, stop, kLong, [] { return false; });
    if (stop.stop_requested()) return;
    hold_up(Clock::now());
    std::list<Thread> left;
    for (auto thread = threads_.begin(); thread != threads_.end();) {
      const auto one = thread++;
      if (one->has_left) left.splice(left.end(), threads_, one);
    }
    const auto n_free = std::ranges::count(threads_, false, &Thread::is_held_up);
    for (std::ptrdiff_t n = n_free; n < size_.n_threads && std::cmp_less(threads_.size(), size_.n_most); ++n) {
      add_thread();
    }
    lock.unlock();
    left.clear();  // joins those that left
    lock.lock();
  }
}

}  // namespace ebb
