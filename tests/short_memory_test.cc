// Memory that is short in the midst of a step ends the requests of that step, with a word, and nothing else.
#include <future>

#include <gmock/gmock.h>

#include "ebb/engine.h"
#include "engine/scheduler.h"
#include "tests/failing_memory.h"
#include "tests/sessions.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

// Allocations that fail, one in each round: the first ones all, later ones with growing gaps.
std::int64_t after(std::int64_t n) { return n + 1 + n / 8; }

class ShortMemory : public Sessions {
 protected:
  std::string said_in(Session& session) {
    const auto generation = start(session, "The quagga sleeps " + kLongText.substr(0, 80), {.max_tokens = 4});
    finish(session, *generation);
    return generation->text();
  }
};

TEST_F(ShortMemory, wherever_a_step_runs_short_its_generation_ends_with_a_word_and_the_engine_goes_on) {
  const std::string wanted = said_in(*new_session());
  for (const std::int32_t n_steps_before : {0, 2}) {  // of the prompt, and of the reply
    bool has_failed = true;
    for (std::int64_t n = 0; has_failed; n = after(n)) {
      SCOPED_TRACE(fmt::format("allocation {} behind {} steps", n, n_steps_before));
      auto session = open_session({.adopts = false});
      auto generation = start(*session, "The quagga sleeps " + kLongText.substr(0, 80), {.max_tokens = 4});
      Generation* const running = generation.get();
      for (std::int32_t i = 0; i < n_steps_before; ++i) ASSERT_TRUE(engine_->step({&running, 1}).ok());
      fail_allocation(n);
      const Status status = engine_->step({&running, 1});
      has_failed = stop_failing();
      const Status ended = status.ok() ? generation->status() : status;
      if (!ended.ok()) {
        EXPECT_EQ(ended.code(), Code::kOutOfBudget);
        EXPECT_THAT(ended.message(), HasSubstr("memory ran short"));
      }
      if (!status.ok()) {
        EXPECT_FALSE(generation->finished()) << "no generation has advanced, and any may try again";
      }
      if (generation->is_broken()) {
        generation.reset();
        session.reset();
      } else {
        finish(*session, *generation);
        EXPECT_TRUE(ended.ok() || !status.ok() || generation->finished());
        if (generation->status().ok()) {
          EXPECT_EQ(generation->text(), wanted);
        }
        session->check_invariants();
      }
      EXPECT_EQ(said_in(*open_session({.adopts = false})), wanted);
    }
  }
}

TEST_F(ShortMemory, a_generation_of_a_step_that_is_refused_its_share_takes_no_other_with_it) {
  const std::string wanted = said_in(*new_session());
  bool has_failed = true;
  for (std::int64_t n = 0; has_failed; n = after(n)) {
    const auto one = open_session({.adopts = false});
    const auto two = open_session({.adopts = false});
    const auto first = start(*one, "The quagga sleeps " + kLongText.substr(0, 80), {.max_tokens = 4});
    const auto second = start(*two, "The quagga sleeps " + kLongText.substr(0, 80), {.max_tokens = 4});
    const std::vector<Generation*> running = {first.get(), second.get()};
    fail_allocation(n);
    (void)engine_->step(running);
    has_failed = stop_failing();
    EXPECT_FALSE(first->finished() && second->finished()) << "allocation " << n;
    while (!first->finished() || !second->finished()) ASSERT_TRUE(engine_->step(running).ok());
    for (const Generation* generation : running) {
      if (generation->status().ok()) {
        EXPECT_EQ(generation->text(), wanted) << "allocation " << n;
      }
    }
  }
}

TEST_F(ShortMemory, a_request_ends_with_a_word_and_the_scheduler_serves_the_next) {
  Result<std::unique_ptr<Scheduler>> scheduler = Scheduler::start(*engine_, {.n_parallel = 2});
  ASSERT_TRUE(scheduler.ok()) << scheduler.status().message();
  const auto say = [&](std::int64_t failing, bool& has_failed) {
    auto promise = std::make_shared<std::promise<RequestEnd>>();
    auto text = std::make_shared<std::string>();
    text->reserve(1024);
    Request request{.owner = "",
                    .lane_id = "lane",
                    .history = Prompt(tokenize("The quagga sleeps " + kLongText.substr(0, 80))),
                    .options = {.sampling = {.temperature = 0.0F}, .max_tokens = 4}};
    // On the scheduler's thread, from its first word on.
    bool is_first = true;
    request.on_progress = [failing, is_first](const RequestProgress&) mutable {
      if (std::exchange(is_first, false) && failing >= 0) fail_allocation(failing);
    };
    request.on_text = [text](std::string_view more) { *text += more; };
    request.on_end = [promise, &has_failed](const RequestEnd& end) {
      has_failed = stop_failing();
      promise->set_value(end);
    };
    std::future<RequestEnd> end = promise->get_future();
    EXPECT_TRUE((*scheduler)->submit(std::move(request)).ok());
    const RequestEnd ended = end.get();
    return std::pair(ended, *text);
  };
  bool has_failed = false;
  const std::string wanted = say(-1, has_failed).second;
  has_failed = true;
  for (std::int64_t n = 0; has_failed; n = after(n)) {
    SCOPED_TRACE(fmt::format("allocation {}", n));
    const RequestEnd end = say(n, has_failed).first;
    if (!end.status.ok()) {
      EXPECT_EQ(end.status.code(), Code::kOutOfBudget);
      EXPECT_THAT(end.status.message(), HasSubstr("memory ran short"));
    }
    bool unused = false;
    const auto [next, text] = say(-1, unused);
    EXPECT_TRUE(next.status.ok()) << next.status.message();
    EXPECT_TRUE(next.warning.empty()) << next.warning;
    EXPECT_EQ(text, wanted);
  }
}

TEST_F(ShortMemory, a_reply_of_the_library_ends_with_a_word_and_its_engine_goes_on) {
  using api::Code;
  api::Engine engine = std::move(
      api::Engine::open({.model = file_.path().string(), .n_threads = 1, .block_size = 16, .kv_budget_tokens = 256})
          .value());
  bool has_failed = true;
  for (std::int64_t n = 0; has_failed; n = after(n)) {
    SCOPED_TRACE(fmt::format("allocation {}", n));
    api::Session session = std::move(engine.new_session({}).value());
    bool is_first = true;
    const auto listen = [&](const api::Event&) {
      if (std::exchange(is_first, false)) fail_allocation(n);
      return true;
    };
    const auto reply = session.say("The quagga sleeps", {.max_tokens = 4, .temperature = 0.0F}, listen);
    has_failed = stop_failing();
    if (!reply.ok()) {
      EXPECT_EQ(reply.error().code, Code::kOutOfBudget);
      EXPECT_THAT(reply.error().message, HasSubstr("memory ran short"));
    }
    const auto next = session.say("And where?", {.max_tokens = 4, .temperature = 0.0F});
    if (!next.ok()) {
      EXPECT_EQ(next.error().code, Code::kDamaged) << next.error().message;
      EXPECT_THAT(next.error().message, HasSubstr("begin a new one"));
    }
    api::Session fresh = std::move(engine.new_session({}).value());
    EXPECT_TRUE(fresh.say("The quagga sleeps", {.max_tokens = 4, .temperature = 0.0F}).ok());
  }
}

}  // namespace
}  // namespace ebb
