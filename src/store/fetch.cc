#include "store/fetch.h"

#include <utility>

namespace ebb {

Fetch::Fetch(std::shared_ptr<Room> room, std::vector<RecordRequest> requests, std::function<void()> notify)
    : room_(std::move(room)),
      requests_(std::move(requests)),
      notify_(std::move(notify)),
      results_(requests_.size()),
      n_left_(requests_.size()) {}

Fetch::~Fetch() {
  const std::lock_guard lock(room_->mutex);
  give_back();
}

// Who had nothing from the thread wakes it for nothing.
void Fetch::give_back() {
  if (held_bytes_ == 0) return;
  room_->held_bytes -= std::exchange(held_bytes_, 0);
  room_->changed.notify_all();
}

bool Fetch::is_ready() const {
  const std::lock_guard lock(room_->mutex);
  return n_left_ == 0;
}

void Fetch::wait() {
  std::unique_lock lock(room_->mutex);
  if (n_left_ == 0) return;
  ++room_->n_waiting;
  room_->changed.notify_all();
  room_->changed.wait(lock, [&] { return n_left_ == 0; });
  --room_->n_waiting;
}

std::vector<Result<RecordHandle>> Fetch::take() {
  wait();
  const std::lock_guard lock(room_->mutex);
  std::vector<Result<RecordHandle>> taken;
  taken.reserve(results_.size());
  for (std::optional<Result<RecordHandle>>& result : results_) taken.push_back(std::move(result).value());
  results_.clear();
  give_back();
  return taken;
}

FetchThread::FetchThread(std::size_t max_bytes, Read read)
    : max_bytes_(max_bytes), read_(std::move(read)), thread_([this] { run(); }) {}

FetchThread::~FetchThread() {
  {
    const std::lock_guard lock(room_->mutex);
    stop_ = true;
  }
  room_->changed.notify_all();
  thread_.join();
}

std::shared_ptr<Fetch> FetchThread::fetch(std::vector<RecordRequest> requests, std::function<void()> notify,
                                          const Have& have, ReadBy by) {
  const std::shared_ptr<Fetch> fetch(new Fetch(room_, std::move(requests), std::move(notify)));
  for (std::size_t i = 0; i < fetch->requests_.size(); ++i) {
    std::optional<RecordHandle> found = have(fetch->requests_[i]);
    if (!found) continue;
    fetch->results_[i] = *std::move(found);
    --fetch->n_left_;
  }
  if (fetch->n_left_ == 0) return fetch;
  if (by == ReadBy::kCaller) {
    read_all(*fetch);
    return fetch;
  }
  {
    const std::lock_guard lock(room_->mutex);
    waiting_.push_back(fetch);
  }
  room_->changed.notify_all();
  return fetch;
}

void FetchThread::read_all(Fetch& fetch) {
  for (std::size_t i = 0; i < fetch.requests_.size(); ++i) {
    if (!fetch.results_[i]) fetch.results_[i] = read_(fetch.requests_[i]);
  }
  fetch.n_left_ = 0;
}

void FetchThread::run() {
  std::unique_lock lock(room_->mutex);
  while (true) {
    room_->changed.wait(lock, [&] {
      const bool has_room = room_->held_bytes == 0 || room_->held_bytes < max_bytes_ || room_->n_waiting > 0;
      return stop_ || (!waiting_.empty() && has_room);
    });
    if (waiting_.empty()) return;
    read_next(lock);
  }
}

void FetchThread::read_next(std::unique_lock<std::mutex>& lock) {
  std::shared_ptr<Fetch> fetch = waiting_.front().lock();
  if (fetch == nullptr) {
    waiting_.pop_front();
    return;
  }
  std::size_t& at = fetch->next_;
  while (fetch->results_[at]) ++at;
  Result<RecordHandle> result = error(Code::kCancelled, "the cold store was closed before it read a record");
  if (!stop_) {
    lock.unlock();
    result = read_(fetch->requests_[at]);
    lock.lock();
  }
  finish(std::move(fetch), std::move(result), lock);
}

void FetchThread::finish(std::shared_ptr<Fetch> fetch, Result<RecordHandle> result,
                         std::unique_lock<std::mutex>& lock) {
  const std::size_t n_bytes = result.ok() ? (*result)->bytes().size() : 0;
  fetch->results_[fetch->next_] = std::move(result);
  fetch->held_bytes_ += n_bytes;
  room_->held_bytes += n_bytes;
  const bool is_last = --fetch->n_left_ == 0;
  if (is_last) {
    waiting_.pop_front();
    room_->changed.notify_all();
  }
  lock.unlock();
  if (is_last && fetch->notify_) fetch->notify_();
  // Here, and not under the lock, which its end takes.
  fetch.reset();
  lock.lock();
}

}  // namespace ebb
