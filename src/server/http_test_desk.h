// What stands in for the engine in tests: requests that the server handed over, to be answered when the test likes.
//
// Thread rule: the handler and on_close callbacks put in on io threads, the test takes out. Every wait has one long deadline.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "server/http.h"

namespace ebb {

inline constexpr std::chrono::seconds kTestDeadline{60};

// Whether it became true. For what nobody announces: counters.
inline bool becomes_true(const std::function<bool()>& condition) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  const auto end = std::chrono::steady_clock::now() + kTestDeadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    never.wait_for(lock, std::chrono::milliseconds(1));
  }
  return true;
}

class TestSignal {
 public:
  void give() {
    const std::lock_guard lock(mutex_);
    ++n_given_;
    given_.notify_all();
  }
  [[nodiscard]] bool comes() {
    std::unique_lock lock(mutex_);
    return given_.wait_for(lock, kTestDeadline, [this] { return n_given_ > 0; });
  }
  [[nodiscard]] int n_given() {
    const std::lock_guard lock(mutex_);
    return n_given_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  int n_given_ = 0;
};

struct TestCase {
  HttpRequest request;
  std::shared_ptr<Responder> responder;
};

class TestDesk {
 public:
  [[nodiscard]] HttpHandler handler() {
    return [this](HttpRequest request, std::shared_ptr<Responder> responder) {
      const std::lock_guard lock(mutex_);
      cases_.push_back({std::move(request), std::move(responder)});
      arrived_.notify_all();
    };
  }
  // The next request; one without a responder when none comes.
  [[nodiscard]] TestCase take() {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, kTestDeadline, [this] { return !cases_.empty(); })) return {};
    TestCase next = std::move(cases_.front());
    cases_.pop_front();
    return next;
  }
  [[nodiscard]] std::size_t n_waiting() {
    const std::lock_guard lock(mutex_);
    return cases_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<TestCase> cases_;
};

// Answers at once with what it was asked: "METHOD path?query body".
inline void echo(const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
  responder->send({.headers = {{"Content-Type", "text/plain"}},
                   .body = request.method + " " + request.path + "?" + request.query + " " + request.body});
}

inline std::unique_ptr<HttpServer> start_test_server(HttpOptions options, HttpHandler handler) {
  if (!options.host.ends_with(".sock")) options.port = 0;
  return HttpServer::start(std::move(options), std::move(handler)).value();
}

}  // namespace ebb
