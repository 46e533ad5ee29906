// The scheduler on an engine: requests together, lanes, the queue, and how all of it ends.
#include "engine/scheduler.h"

#include <future>
#include <latch>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/lane_acts.h"
#include "tests/scheduler_fixture.h"

namespace ebb {
namespace {

using ::testing::HasSubstr;

TEST_F(Schedulers, requests_that_run_together_say_what_each_says_alone) {
  start({.n_parallel = 1});
  std::vector<std::string> alone;
  for (int i = 0; i < 6; ++i) alone.push_back(say(request(letters(40, static_cast<char>('a' + i)))).text);
  scheduler_.reset();
  start({.n_parallel = 4});
  std::vector<std::future<Said>> together;
  for (int i = 0; i < 6; ++i) together.push_back(submit(request(letters(40, static_cast<char>('a' + i)))));
  for (std::size_t i = 0; i < together.size(); ++i) {
    const Said said = together[i].get();
    EXPECT_TRUE(said.end.status.ok()) << said.end.status.message();
    EXPECT_EQ(said.text, alone[i]);
  }
}

TEST_F(Schedulers, a_history_that_goes_on_finds_its_lane_with_and_without_an_id) {
  start({});
  for (const std::string lane : {"", "ses_1"}) {
    const std::string history = "the first message " + letters(60, lane.empty() ? 'p' : 'q');
    say(request(history, "", lane));
    const Said second = say(request(history, "", lane));
    EXPECT_EQ(second.end.turn.from[Origin::kNew], 1) << lane;
    EXPECT_GT(second.end.turn.from[Origin::kHotAlready], 60) << lane;
  }
  EXPECT_EQ(scheduler_->stats().n_lanes, 2U);
}

TEST_F(Schedulers, another_conversation_opens_a_lane_and_takes_the_blocks_they_share) {
  start({.n_parallel = 1});
  const std::string system = letters(70, 's');
  say(request(system + letters(100, 'a'), "", "one"));
  ASSERT_TRUE(engine_->store()->flush().ok());
  const Said other = say(request(system + letters(30, 'b'), "", "two"));
  EXPECT_GE(other.end.turn.n_adopted, 48);
  const Said stranger = say(request(system + letters(30, 'b'), "another owner", "two"));
  EXPECT_EQ(stranger.end.turn.n_adopted, 0);
  EXPECT_EQ(stranger.end.turn.from[Origin::kHotAlready], 0);
  EXPECT_EQ(stranger.text, other.text);
}

TEST_F(Schedulers, lanes_that_do_not_fit_together_are_parked_and_come_back_whole) {
  start({.n_parallel = 2});
  std::vector<std::string> histories;
  for (char lane = 'a'; lane < 'f'; ++lane) histories.push_back(letters(250, lane));
  std::vector<std::string> replies;
  for (const std::string& history : histories) replies.push_back(say(request(history, "", history.substr(0, 1))).text);
  bool any_parked = false;
  scheduler_->inspect([&](const Lanes& lanes) {
    for (const Lane& lane : lanes.all()) any_parked = any_parked || lane.image.has_value();
  });
  EXPECT_TRUE(any_parked);
  for (std::size_t i = 0; i < histories.size(); ++i) {
    const Said again = say(request(histories[i], "", histories[i].substr(0, 1)));
    ASSERT_TRUE(again.end.status.ok()) << again.end.status.message();
    EXPECT_EQ(again.text, replies[i]);
    EXPECT_EQ(again.end.turn.from[Origin::kHole], 0);
    EXPECT_LE(again.end.turn.from.n_computed(), 16);
  }
}

TEST_F(Schedulers, a_parked_session_that_fits_its_budget_comes_back_whole_whatever_its_store_lost) {
  start({.n_parallel = 1});
  for (const std::size_t n_lost : {0U, 1U, 5U, 30U}) {
    const std::string id = fmt::format("lost{}", n_lost);
    const std::string history = id + letters(580, 'a');  // 37 blocks of 40
    const Said first = say(request(history, "", id));
    const auto find_names = [&] {
      std::vector<Hash128> names;
      scheduler_->inspect([&](const Lanes& lanes) {
        const auto lane = std::ranges::find(lanes.all(), id, &Lane::id);
        for (std::int32_t b = 0; b < lane->session->n_blocks(); ++b) {
          names.push_back(lane->session->exact_name(BlockIndex(b)));
        }
      });
      return names;
    };
    const std::vector<Hash128> names = find_names();
    ASSERT_GE(names.size(), n_lost);
    scheduler_->act([](Lanes& lanes) {
      while (lanes.park_one()) {}
    });
    ASSERT_TRUE(engine_->store()->flush().ok());
    for (std::size_t i = names.size() - n_lost; i < names.size(); ++i) engine_->store()->drop(names[i]);
    const Said again = say(request(history, "", id));
    EXPECT_EQ(again.end.turn.from[Origin::kHole], 0) << id;
    EXPECT_GE(again.end.turn.from[Origin::kRecomputed], 16 * (static_cast<int>(n_lost) - 1)) << id;
    EXPECT_EQ(again.text, first.text) << id;
    EXPECT_EQ(find_names(), names) << id << ": each was computed behind what it was computed behind before";
  }
}

TEST_F(Schedulers, lanes_that_fit_together_stay_hot_and_only_as_many_are_parked_as_a_new_one_needs) {
  start({.n_parallel = 1});
  const std::string a = letters(250, 'a');
  const std::string b = letters(250, 'b');
  const auto is_awake = [&](const std::string& id) {
    bool awake = false;
    scheduler_->inspect([&](const Lanes& lanes) {
      for (const Lane& lane : lanes.all()) awake = awake || (lane.id == id && lane.session != nullptr);
    });
    return awake;
  };
  for (int round = 0; round < 3; ++round) {
    for (const std::string& history : {a, b}) {
      const Said said = say(request(history, "", history.substr(0, 1)));
      EXPECT_TRUE(said.end.turn.acts.recalled.empty());
      EXPECT_EQ(said.end.session.n_evicted_blocks, 0);
      if (round == 0) continue;
      EXPECT_LE(said.end.turn.from.n_computed(), 16);
    }
  }
  EXPECT_TRUE(is_awake("a") && is_awake("b"));
  say(request(letters(150, 'c'), "", "c"));
  EXPECT_FALSE(is_awake("a")) << "the longest unused";
  EXPECT_TRUE(is_awake("b") && is_awake("c"));
}

TEST_F(Schedulers, a_system_prompt_that_an_idle_lane_has_hot_is_shared_with_a_new_one) {
  start({.n_parallel = 1});
  const std::string system = letters(160, 's');
  say(request(system + letters(30, 'a'), "", "one"));
  const Said other = say(request(system + letters(30, 'b'), "", "two"));
  EXPECT_GE(other.end.turn.from[Origin::kShared], 144);
  const auto n_blocks = scheduler_->stats().n_hot_tokens / 16;
  EXPECT_LE(n_blocks, 10 + 2 * 4) << "what both have is counted once";
}

TEST_F(Schedulers, progress_counts_what_blocks_give_as_cached_and_what_steps_compute_as_computed) {
  start({.n_parallel = 1});
  const std::string system = letters(160, 's');
  say(request(system + letters(30, 'a'), "", "one"));
  Request other = request(system + letters(100, 'b'), "", "two", 3);
  const auto n_prompt = other.history.n_tokens();
  std::vector<RequestProgress> all;
  other.on_progress = [&](const RequestProgress& progress) { all.push_back(progress); };
  const Said said = say(std::move(other));
  ASSERT_GE(all.size(), 1U + 2 + 2) << "the beginning, 2 steps of 64 rows for the prompt, 2 more tokens";
  EXPECT_EQ(all.front().n_computed, 0);
  EXPECT_GE(all.front().n_cached, 144);
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_EQ(all[i].n_prompt, n_prompt);
    EXPECT_GE(all[i].n_cached, all[i - 1].n_cached);
    EXPECT_GE(all[i].n_computed, all[i - 1].n_computed);
    EXPECT_GE(all[i].elapsed_ms, all[i - 1].elapsed_ms);
  }
  EXPECT_LT(all[1].n_cached + all[1].n_computed, n_prompt);
  EXPECT_EQ(all.back().n_computed, said.end.turn.from.n_computed());
  EXPECT_EQ(all.back().n_cached + all.back().n_computed, n_prompt);
  EXPECT_EQ(all.back().stats.n_generated, 3);
}

TEST_F(Schedulers, a_full_queue_refuses_and_a_cancelled_request_ends_once) {
  start({.n_parallel = 1, .max_queued = 1});
  std::latch looked{1};
  std::promise<void> go;
  std::jthread holder([&] {
    scheduler_->inspect([&](const Lanes&) {
      looked.count_down();
      go.get_future().wait();
    });
  });
  looked.wait();
  RequestId id = 0;
  std::future<Said> waiting = submit(request("hello"), &id);
  const Result<RequestId> refused = scheduler_->submit(request("one more"));
  EXPECT_EQ(refused.status().code(), Code::kOutOfBudget);
  EXPECT_THAT(refused.status().message(), HasSubstr("try again later"));
  scheduler_->cancel(id);
  scheduler_->cancel(12345);
  go.set_value();
  EXPECT_EQ(waiting.get().end.status.code(), Code::kCancelled);
  EXPECT_TRUE(say(request("hello")).end.status.ok());
}

TEST_F(Schedulers, a_grammar_is_compiled_before_a_request_waits_and_not_again) {
  start({.n_parallel = 1});
  Request sick = request("hello");
  sick.options.sampling.grammar = "root ::= (";
  EXPECT_EQ(scheduler_->submit(std::move(sick)).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(scheduler_->stats().n_requests, 0);
  Request made = request("hello");
  GenerationOptions options = made.options;
  options.sampling.grammar = "root ::= \"yes\"";
  made.options.sampling.grammar = "root ::= (";
  made.writer = Writer::create(engine_->vocabulary(), options).value();
  const Said said = say(std::move(made));
  EXPECT_TRUE(said.end.status.ok()) << said.end.status.message();
  EXPECT_EQ(said.text, "yes");
}

TEST_F(Schedulers, a_request_that_is_cancelled_while_it_runs_leaves_its_lane_usable) {
  start({.n_parallel = 1});
  auto first = std::make_shared<std::promise<void>>();
  auto ended = std::make_shared<std::promise<RequestEnd>>();
  Request endless = request("hello " + letters(30, 'h'), "", "lane", 500);
  endless.on_text = [first, told = false](std::string_view) mutable {
    if (!std::exchange(told, true)) first->set_value();
  };
  endless.on_end = [ended](const RequestEnd& end) { ended->set_value(end); };
  const Result<RequestId> id = scheduler_->submit(std::move(endless));
  ASSERT_TRUE(id.ok());
  first->get_future().wait();
  scheduler_->cancel(*id);
  const RequestEnd end = ended->get_future().get();
  EXPECT_TRUE(end.reason == FinishReason::kCancelled || end.reason == FinishReason::kEndOfGeneration ||
              end.reason == FinishReason::kLength);
  EXPECT_TRUE(say(request("hello " + letters(30, 'h'), "", "lane")).end.status.ok());
}

TEST_F(Schedulers, going_down_ends_every_request_and_gives_every_frame_back) {
  start({.n_parallel = 2});
  std::vector<std::future<Said>> all;
  for (char c = 'a'; c < 'k'; ++c) all.push_back(submit(request(letters(200, c), "", std::string(1, c), 400)));
  scheduler_.reset();
  for (auto& one : all) (void)one.get();
  EXPECT_EQ(engine_->pool().n_free(), engine_->pool().n_frames());
}

TEST_F(Schedulers, a_history_longer_than_the_context_is_refused_where_sessions_do_not_rebase) {
  start({.session = {.rebases = false}});
  const Said refused = say(request(letters(700, 'x')));
  EXPECT_EQ(refused.end.status.code(), Code::kOutOfBudget);
  EXPECT_TRUE(say(request("short")).end.status.ok());
}

TEST_F(Schedulers, a_reply_that_comes_to_the_end_of_the_context_stands_and_says_why_it_ends) {
  start({.session = {.rebases = false}});
  Request full = request(letters(610, 'a'), "", "", -1);
  full.options.sampling.logit_bias.push_back({*engine_->vocabulary().eos(), -1e6F});
  const Said said = say(std::move(full));
  ASSERT_TRUE(said.end.status.ok()) << said.end.status.message();
  EXPECT_EQ(said.end.reason, FinishReason::kLength);
  EXPECT_GT(said.end.stats.n_generated, 8);
  EXPECT_THAT(said.end.warning, HasSubstr("trained for"));
}

TEST_F(Schedulers, a_reply_without_a_bound_is_no_longer_than_what_the_model_was_trained_for) {
  start({});
  Request endless = request("on and on", "", "", -1);
  for (std::int32_t i = 0; i < engine_->vocabulary().n_tokens(); ++i) {
    if (engine_->vocabulary().is_end_of_generation(Token(i))) {
      endless.options.sampling.logit_bias.push_back({Token(i), -1e6F});
    }
  }
  const Said said = say(std::move(endless));
  ASSERT_TRUE(said.end.status.ok()) << said.end.status.message();
  EXPECT_EQ(said.end.reason, FinishReason::kLength);
  EXPECT_EQ(said.end.stats.n_generated, 640);
}

TEST_F(Schedulers, a_request_for_no_tokens_computes_its_prompt) {
  start({});
  const Said none = say(request(letters(100, 'a'), "", "", 0));
  EXPECT_EQ(none.end.reason, FinishReason::kLength);
  EXPECT_EQ(none.end.stats.n_generated, 0);
  EXPECT_EQ(none.end.turn.from[Origin::kNew], none.end.stats.n_prompt);
  const Said next = say(request(letters(100, 'a')));
  EXPECT_EQ(next.end.turn.from[Origin::kNew], 1);
}

TEST_F(Schedulers, a_short_prompt_does_not_wait_for_a_long_one) {
  start({.n_parallel = 2});
  std::mutex mutex;
  std::string began;
  std::vector<std::future<Said>> futures;
  const auto noting = [&](Request request, char name) {
    request.on_progress = [&, name](const RequestProgress& progress) {
      const std::scoped_lock lock(mutex);
      if (progress.stats.n_generated > 0) began += name;
    };
    return request;
  };
  // Both wait before either begins.
  scheduler_->act([&](Lanes&) {
    futures.push_back(submit(noting(request(letters(600, 'l'), "", "long", 1), 'l')));
    futures.push_back(submit(noting(request(letters(60, 's'), "", "short", 1), 's')));
  });
  for (std::future<Said>& said : futures) EXPECT_TRUE(said.get().end.status.ok());
  EXPECT_EQ(began, "sl");
}

TEST_F(Schedulers, where_blocks_seal_idle_lanes_give_up_the_open_ones_too) {
  EngineOptions options{.model = file_.path(), .n_threads = 1, .kv_type = RowType::kKivi4, .block_size = 32};
  options.n_open_blocks = 2;
  Result<std::unique_ptr<Engine>> engine = Engine::open(options);
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  engine_ = *std::move(engine);
  start({.n_parallel = 1});
  for (const char* const lane : {"a", "b", "c", "d", "a"}) {
    const Said said = say(request(letters(40, lane[0]), "", lane));
    EXPECT_TRUE(said.end.status.ok()) << lane << ": " << said.end.status.message();
  }
}

TEST_F(Schedulers, more_requests_at_once_than_the_budget_holds_are_refused_at_the_start) {
  const auto refused = Scheduler::start(*engine_, {.n_parallel = 50});
  EXPECT_THAT(refused.status().message(), HasSubstr("1 to 10"));
}

TEST_F(Schedulers, what_an_act_throws_is_its_callers_and_the_next_request_is_served) {
  start({.n_parallel = 2});
  const Said before = say(request(letters(40, 'a'), "", "lane"));
  EXPECT_THROW(scheduler_->inspect([](const Lanes&) { throw std::runtime_error("looking"); }), std::runtime_error);
  EXPECT_THROW(scheduler_->act([](Lanes&) { throw std::bad_alloc(); }), std::bad_alloc);
  // In the midst of changing the session.
  const auto evict_and_throw = [](Lanes& lanes) {
    Lane& lane = lanes.all().front();
    (void)act_on(lane, [&]() -> Status {
      const std::vector<std::string> first = {lane.session->block_name(BlockIndex(0))};
      EXPECT_TRUE(evict_blocks(*lane.session, first, lane.session->shape().all_heads()).ok());
      throw std::bad_alloc();
    });
  };
  EXPECT_THROW(scheduler_->act(evict_and_throw), std::bad_alloc);
  EXPECT_EQ(scheduler_->stats().n_hot_tokens, 0) << "its frames are given back";
  const Said after = say(request(letters(40, 'a'), "", "lane"));
  EXPECT_TRUE(after.end.status.ok()) << after.end.status.message();
  EXPECT_EQ(after.text, before.text);
}

}  // namespace
}  // namespace ebb
