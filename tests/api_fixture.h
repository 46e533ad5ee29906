// The API with a scheduler and the bundled model, behind a responder that keeps what it is given: for tests of routes.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/scheduler.h"
#include "json/json_fields.h"
#include "server/api.h"
#include "tests/files.h"
#include "tests/messages.h"

namespace ebb {

class Kept : public Responder {
 public:
  void send(HttpAnswer answer) override {
    const std::scoped_lock lock(mutex_);
    status_ = answer.status;
    headers_ = std::move(answer.headers);
    body_ = std::move(answer.body);
    end();
  }
  void begin_stream(HttpStreamHead head) override {
    const std::scoped_lock lock(mutex_);
    status_ = head.status;
    headers_ = std::move(head.headers);
    ping_after_ = head.ping_after;
  }
  std::size_t write(std::string_view text) override {
    const std::scoped_lock lock(mutex_);
    body_ += text;
    changed_.notify_all();
    return 0;
  }
  void finish() override {
    const std::scoped_lock lock(mutex_);
    end();
  }
  void abort() override { finish(); }
  [[nodiscard]] bool is_closed() const override {
    const std::scoped_lock lock(mutex_);
    return is_done_;
  }
  [[nodiscard]] bool on_close(std::function<void()> callback) override {
    const std::scoped_lock lock(mutex_);
    on_close_ = std::move(callback);
    changed_.notify_all();
    return !is_done_ || status_ != 0;
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_done_; });
  }
  void wait_for(std::string_view text) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_done_ || body_.find(text) != std::string::npos; });
  }
  // As soon as it would be noticed.
  void leave() {
    std::function<void()> callback;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_done_ || on_close_; });
      callback = on_close_;
    }
    if (callback) callback();
  }
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] const std::string& body() const { return body_; }
  // The silence after which a stream has a comment.
  [[nodiscard]] std::chrono::milliseconds ping_after() const { return ping_after_; }
  [[nodiscard]] Json json() const { return Json::parse(body_); }
  [[nodiscard]] std::string header(std::string_view name) const {
    for (const HttpHeader& header : headers_) {
      if (header.name == name) return header.value;
    }
    return {};
  }

 private:
  void end() {
    is_done_ = true;
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_done_ = false;
  int status_ = 0;
  HttpHeaders headers_;
  std::string body_;
  std::chrono::milliseconds ping_after_{0};
  std::function<void()> on_close_;
};

// Has its first answer end in an exception, as a library might throw it.
class ThrowsOnce final : public Kept {
 public:
  void send(HttpAnswer answer) override {
    if (std::exchange(throws_, false)) throw std::runtime_error("secret");
    Kept::send(std::move(answer));
  }

 private:
  bool throws_ = true;
};

class Server : public ::testing::Test {
 protected:
  void SetUp() override { open({}); }

  void open(ApiOptions options, SessionOptions session = {}, const LaneLimits& lanes = {}) {
    api_.reset();
    scheduler_.reset();
    EngineOptions engine_options{
        .model = bundled_model(), .n_threads = 1, .kv_budget_tokens = 1024, .session = session};
    engine_options.embedding_model = embedding_model_;
    Result<std::unique_ptr<Engine>> engine = Engine::open(engine_options);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = *std::move(engine);
    Result<std::unique_ptr<Scheduler>> scheduler =
        Scheduler::start(*engine_, {.n_parallel = 2, .lanes = lanes, .session = session});
    ASSERT_TRUE(scheduler.ok()) << scheduler.status().message();
    scheduler_ = *std::move(scheduler);
    options.model_name = "m";
    Result<std::unique_ptr<Api>> api = Api::create(*engine_, *scheduler_, std::move(options));
    ASSERT_TRUE(api.ok()) << api.status().message();
    api_ = *std::move(api);
  }

  std::shared_ptr<Kept> send(std::string method, std::string path, std::string body = "", HttpHeaders headers = {}) {
    auto kept = std::make_shared<Kept>();
    const std::size_t mark = std::min(path.find('?'), path.size());
    api_->handle({.method = std::move(method),
                  .path = path.substr(0, mark),
                  .query = mark < path.size() ? path.substr(mark + 1) : "",
                  .headers = std::move(headers),
                  .body = std::move(body)},
                 kept);
    return kept;
  }
  std::shared_ptr<Kept> ask(std::string method, std::string path, std::string body = "", HttpHeaders headers = {}) {
    auto kept = send(std::move(method), std::move(path), std::move(body), std::move(headers));
    kept->wait();
    return kept;
  }
  std::shared_ptr<Kept> chat(const Json& messages, Json more = Json::object(), HttpHeaders headers = {}) {
    more["messages"] = messages;
    if (!more.contains("temperature")) more["temperature"] = 0;
    if (!more.contains("max_tokens")) more["max_tokens"] = 24;
    return ask("POST", "/v1/chat/completions", more.dump(), std::move(headers));
  }

  // A request of the lane "busy~text" that is at work from now on, until it is left.
  std::shared_ptr<Kept> start_endless(HttpHeaders headers = {}) {
    Json body = {{"prompt", "The code of"}, {"max_tokens", 100'000}, {"stream", true}, {"temperature", 0}};
    // No token ends it.
    for (std::int32_t t = 0; t < engine_->vocabulary().n_tokens(); ++t) {
      if (engine_->vocabulary().is_end_of_generation(Token(t))) body["logit_bias"][std::to_string(t)] = false;
    }
    headers.push_back({"x-session-id", "busy"});
    auto kept = send("POST", "/v1/completions", body.dump(), std::move(headers));
    kept->wait_for("data: ");
    return kept;
  }

  // Of engines that are opened from then on.
  std::filesystem::path embedding_model_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Api> api_;
};

// The data of each event, [DONE] too.
inline std::vector<std::string> events(const std::string& body) {
  std::vector<std::string> all;
  std::size_t at = 0;
  while ((at = body.find("data: ", at)) != std::string::npos) {
    const std::size_t end = body.find('\n', at);
    all.push_back(body.substr(at + 6, end - at - 6));
    at = end;
  }
  return all;
}

}  // namespace ebb
