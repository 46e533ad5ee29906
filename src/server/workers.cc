#include "server/workers.h"

#include <algorithm>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

namespace ebb {
namespace {

using std::chrono::milliseconds;

// Longer is long work. Ordinary prompts take a few milliseconds, or some tens where they have a hundred thousand letters.
constexpr auto kLong = milliseconds(20);
// What a thread of long work is put back by: it then gets a tenth of what others get that have work.
constexpr int kNicer = 10;
// Of what is worked on at once, but that something always is.
constexpr std::size_t kMostBytes = std::size_t{64} << 20U;
// Who waited so long is not passed over any more.
constexpr auto kLongWait = milliseconds(1000);

}  // namespace

Workers::Workers(Size size) : size_(size) {
  const std::scoped_lock lock(mutex_);
  for (int i = 0; i < size_.n_threads; ++i) add_thread();
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
  waiting_.push_back({.owner = std::string(owner), .n_bytes = n_bytes, .work = std::move(work), .since = Clock::now()});
  changed_.notify_all();
  return Room::kTaken;
}

void Workers::add_thread() {
  Thread& added = threads_.emplace_back();
  added.thread = std::jthread([this, &added](const std::stop_token& stop) { work(stop, added); });
}

// Of those that fit beside what is worked on, the first of an owner who has the fewest at work.
std::deque<Workers::Waiting>::iterator Workers::find_next(Clock::time_point now) {
  std::size_t n_bytes = 0;
  bool is_any = false;
  for (const Thread& thread : threads_) {
    if (!thread.is_working) continue;
    is_any = true;
    n_bytes += thread.working.n_bytes;
  }
  const auto fits = [&](const Waiting& one) { return !is_any || n_bytes + one.n_bytes <= kMostBytes; };
  const auto n_of = [&](const std::string& owner) {
    return std::ranges::count_if(
        threads_, [&](const Thread& thread) { return thread.is_working && thread.working.owner == owner; });
  };
  if (waiting_.empty()) return waiting_.end();
  if (now - waiting_.front().since > kLongWait) return fits(waiting_.front()) ? waiting_.begin() : waiting_.end();
  auto next = waiting_.end();
  std::ptrdiff_t n_next = 0;
  for (auto one = waiting_.begin(); one != waiting_.end(); ++one) {
    if (!fits(*one)) continue;
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
    const auto is_next = [&] { return (next = find_next(Clock::now())) != waiting_.end(); };
    if (!changed_.wait(lock, stop, is_next) || stop.stop_requested()) break;
    const std::function<void()> work = std::move(next->work);
    self.working = {.owner = std::move(next->owner), .n_bytes = next->n_bytes, .since = Clock::now()};
    self.is_working = true;
    waiting_.erase(next);
    changed_.notify_all();
    lock.unlock();
    work();
    lock.lock();
    self.is_working = false;
    changed_.notify_all();
  }
  self.has_left = true;
  changed_.notify_all();
}

bool Workers::keeps_watch() const {
  return std::ranges::any_of(
      threads_, [](const Thread& thread) { return thread.has_left || (thread.is_working && !thread.is_held_up); });
}

// Marks who works for long, and puts them back.
void Workers::hold_up(Clock::time_point now) {
  for (Thread& thread : threads_) {
    if (!thread.is_working || thread.is_held_up || now - thread.working.since < kLong) continue;
    thread.is_held_up = true;
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
