#include "server/http_exchange.h"

#include <utility>

#include "base/check.h"

namespace ebb {

using Callback = std::function<void()>;

std::shared_ptr<Responder> HttpExchange::responder_of(const std::shared_ptr<HttpExchange>& exchange) {
  return {exchange.get(), [exchange](Responder*) { exchange->let_go(); }};
}

void HttpExchange::let_go() {
  bool unanswered = false;
  {
    const std::lock_guard lock(mutex_);
    unanswered = state_ == State::kWaiting;
  }
  if (unanswered) {
    send_error(500, "the server dropped the request without an answer");
  } else {
    abort();
  }
}

void HttpExchange::wake() {
  if (std::exchange(awake_, true)) return;
  traits_.wake();
}

// The connection may be in the middle of a write to a client that takes nothing, and would take no more until its end.
void HttpExchange::break_off() {
  state_ = State::kBroken;
  queue_.clear();
  traits_.wake();
}

std::string HttpExchange::head_of(int status, const HttpHeaders& headers, Framing framing, std::size_t body_bytes) {
  return format_head({.status = status,
                      .headers = headers,
                      .framing = framing,
                      .body_bytes = body_bytes,
                      .http_1_1 = traits_.http_1_1,
                      .keep_alive = traits_.keep_alive,
                      .date = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())});
}

// A callback may own what locks this mutex when it dies, so it dies after the lock (declared before it).
void HttpExchange::send(HttpAnswer answer) {
  Callback forgotten;
  const std::lock_guard lock(mutex_);
  if (state_ == State::kClosed || state_ == State::kBroken) return;
  EBB_CHECK(state_ == State::kWaiting, "a request gets one answer; this one (status {}) is its second", answer.status);
  queue_ += head_of(answer.status, answer.headers, Framing::kLength, answer.body.size());
  if (!traits_.head_only) queue_ += answer.body;
  state_ = State::kComplete;
  forgotten = std::exchange(on_close_, nullptr);
  wake();
}

void HttpExchange::begin_stream(HttpStreamHead head) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kClosed || state_ == State::kBroken) return;
  EBB_CHECK(state_ == State::kWaiting, "a request gets one answer; this one (status {}) is its second", head.status);
  framing_ = traits_.http_1_1 ? Framing::kChunked : Framing::kUntilClose;
  if (framing_ == Framing::kUntilClose) traits_.keep_alive = false;
  queue_ += head_of(head.status, head.headers, framing_, 0);
  ping_ = std::move(head.ping);
  ping_after_ = head.ping_after;
  last_write_ = std::chrono::steady_clock::now();
  state_ = State::kStreaming;
  wake();
}

void HttpExchange::append_body(std::string_view text) {
  if (traits_.head_only) return;
  if (framing_ == Framing::kChunked) {
    append_chunk(queue_, text);
  } else {
    queue_ += text;
  }
}

std::size_t HttpExchange::write(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kClosed || state_ == State::kBroken) return 0;
  EBB_CHECK(state_ == State::kStreaming, "write() lies between begin_stream() and finish()");
  if (queue_.size() + n_in_flight_bytes_ > traits_.options->max_queued_bytes) {
    too_slow_ = true;
    break_off();
    return 0;
  }
  append_body(text);
  last_write_ = std::chrono::steady_clock::now();
  if (!queue_.empty()) wake();
  return queue_.size() + n_in_flight_bytes_;
}

void HttpExchange::finish() {
  Callback forgotten;
  const std::lock_guard lock(mutex_);
  if (state_ == State::kClosed || state_ == State::kBroken) return;
  EBB_CHECK(state_ == State::kStreaming, "finish() ends a begun stream, once");
  if (framing_ == Framing::kChunked && !traits_.head_only) queue_ += kLastChunk;
  state_ = State::kComplete;
  forgotten = std::exchange(on_close_, nullptr);
  wake();
}

void HttpExchange::abort() {
  Callback forgotten;
  const std::lock_guard lock(mutex_);
  if (state_ != State::kWaiting && state_ != State::kStreaming) return;
  forgotten = std::exchange(on_close_, nullptr);
  break_off();
}

bool HttpExchange::is_closed() const {
  const std::lock_guard lock(mutex_);
  return state_ != State::kWaiting && state_ != State::kStreaming;
}

bool HttpExchange::on_close(Callback callback) {
  Callback forgotten;
  const std::lock_guard lock(mutex_);
  if (state_ != State::kWaiting && state_ != State::kStreaming) return false;
  forgotten = std::exchange(on_close_, std::move(callback));
  EBB_CHECK(!forgotten, "a request has one on_close callback");
  return true;
}

void HttpExchange::send_interim(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kWaiting) return;
  queue_ += text;
  wake();
}

void HttpExchange::send_error(int status, std::string_view message) {
  HttpAnswer answer = traits_.options->error_answer(status, message);
  answer.status = status;
  if (status == 503) answer.headers.push_back({"Retry-After", "1"});
  send(std::move(answer));
}

void HttpExchange::end_keep_alive() {
  const std::lock_guard lock(mutex_);
  traits_.keep_alive = false;
}

bool HttpExchange::keep_alive() const {
  const std::lock_guard lock(mutex_);
  return traits_.keep_alive;
}

bool HttpExchange::is_complete() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::kComplete;
}

HttpExchange::Fate HttpExchange::fate() const {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kBroken) return Fate::kAlive;
  return too_slow_ ? Fate::kTooSlow : Fate::kAborted;
}

HttpExchange::Taken HttpExchange::take() {
  const std::lock_guard lock(mutex_);
  awake_ = false;
  n_in_flight_bytes_ += queue_.size();
  return {.bytes = std::exchange(queue_, {}), .is_last = state_ == State::kComplete};
}

void HttpExchange::written(std::size_t n_bytes) {
  const std::lock_guard lock(mutex_);
  EBB_CHECK(n_bytes <= n_in_flight_bytes_, "{} bytes written of {}", n_bytes, n_in_flight_bytes_);
  n_in_flight_bytes_ -= n_bytes;
}

HttpExchange::Time HttpExchange::ping(Time now) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kStreaming || ping_after_.count() <= 0 || ping_.empty()) return Time::max();
  if (now < last_write_ + ping_after_) return last_write_ + ping_after_;
  if (queue_.empty() && n_in_flight_bytes_ == 0) {  // else the client has something to read already
    append_body(ping_);
    if (!queue_.empty()) wake();
  }
  last_write_ = now;
  return now + ping_after_;
}

Callback HttpExchange::close() {
  const std::lock_guard lock(mutex_);
  // A complete answer keeps its state, so that a second one is still told from an answer to a client that left.
  if (state_ != State::kComplete) state_ = State::kClosed;
  queue_.clear();
  return std::exchange(on_close_, nullptr);
}

}  // namespace ebb
