// A scheduler on an engine with a small random model, and requests to it: for tests of both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "engine/scheduler.h"
#include "model/random_model.h"
#include "tests/files.h"

namespace ebb {

struct Said {
  std::string text;
  RequestEnd end;
};

class Schedulers : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_random_model({.n_kv_heads = 2, .n_ctx_train = 640}, file_.path()).ok());
    EngineOptions options{.model = file_.path(), .n_threads = 1, .block_size = 16, .chunk = 64};
    Result<std::unique_ptr<Engine>> engine = Engine::open(options);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = *std::move(engine);
  }

  void start(const SchedulerOptions& options) {
    Result<std::unique_ptr<Scheduler>> scheduler = Scheduler::start(*engine_, options);
    ASSERT_TRUE(scheduler.ok()) << scheduler.status().message();
    scheduler_ = *std::move(scheduler);
  }

  Request request(std::string_view text, std::string owner = "", std::string lane = "", std::int32_t n_tokens = 6) {
    const auto tokens = engine_->vocabulary().tokenize(text);
    EXPECT_TRUE(tokens.ok());
    return {.owner = std::move(owner),
            .lane_id = std::move(lane),
            .history = Prompt(*tokens),
            .options = {.sampling = {.temperature = 0.0F}, .max_tokens = n_tokens}};
  }

  std::future<Said> submit(Request request, RequestId* id = nullptr) {
    auto promise = std::make_shared<std::promise<Said>>();
    auto text = std::make_shared<std::string>();
    request.on_text = [text](std::string_view more) { *text += more; };
    request.on_end = [promise, text](const RequestEnd& end) { promise->set_value({*text, end}); };
    std::future<Said> future = promise->get_future();
    const Result<RequestId> submitted = scheduler_->submit(std::move(request));
    EXPECT_TRUE(submitted.ok()) << submitted.status().message();
    if (id != nullptr) *id = *submitted;
    return future;
  }

  Said say(Request request) { return submit(std::move(request)).get(); }

  TemporaryFile file_{".gguf"};
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Scheduler> scheduler_;
};

inline std::string letters(std::size_t n, char letter) { return std::string(n, letter); }

}  // namespace ebb
