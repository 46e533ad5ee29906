// The scheduler's inside: what its thread works on, and what it shares with those who ask (scheduler.cc).
//
// Thread rule: what stands above `mutex` is the scheduler's thread's alone, once that runs; what stands below is
// whoever's has locked it. `engine` and `options` change no more.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "engine/request_queue.h"
#include "engine/scheduler.h"

namespace ebb {

// The part of its budget that a session may have pinned. More: a session whose share shrinks has no room for a reply.
inline constexpr double kMostPinned = 0.5;

struct Running {
  RequestId id = 0;
  Request request;
  // Its own as long as it runs.
  std::size_t seat = 0;
  Lane* lane = nullptr;
  std::unique_ptr<Generation> generation;
  double queued_ms = 0.0;
  // Of its reply, that were seen after a step, and since when there was none more.
  std::int32_t n_seen = 0;
  Stopwatch since_seen = {};
  // Its first step can begin, and it was told so.
  bool has_begun = false;
  // Its session's, before it.
  SessionStats before;
  // It was told its end.
  bool is_told = false;
  Stopwatch since = {};

  // Tokens of its prompt as its session holds it, where a reply has those that the model wrote, and not those that the
  // history says it in.
  std::int32_t n_prompt = 0;

  [[nodiscard]] RequestProgress progress() const;
};

// By all requests at work.
struct Generated {
  std::int64_t n_tokens = 0;
  double ms = 0.0;
};

struct Scheduler::State {
  State(Engine& e, const SchedulerOptions& o, std::unique_ptr<LaneFolder> f)
      : engine(e),
        options(o),
        folder(std::move(f)),
        lanes(e, o.session, o.lanes, folder.get()),
        budget_tokens(e.budget_tokens()),
        waiting({.most = o.max_queued,
                 .most_of_owner = o.max_queued_of_owner,
                 .n_parallel_of_owner = o.n_parallel_of_owner}) {
    // So that one that has left the queue is among them, whatever happens.
    running.reserve(static_cast<std::size_t>(o.n_parallel));
  }

  Engine& engine;
  SchedulerOptions options;
  // Null: sessions end with this process.
  std::unique_ptr<LaneFolder> folder;

  // Who tells of records that were read, from the store's threads; the scheduler leaves it before it goes.
  struct FetchNews {
    std::mutex mutex;
    State* state = nullptr;
  };
  std::shared_ptr<FetchNews> fetch_news = std::make_shared<FetchNews>();

  // What follows is of the scheduler's thread alone.
  Lanes lanes;
  std::vector<Running> running;
  std::int32_t budget_tokens;

  mutable std::mutex mutex;
  std::condition_variable changed;
  RequestQueue waiting;
  std::set<RequestId> cancelled;
  std::vector<std::function<void()>> acts;
  SchedulerStats stats;
  RequestId n_ids = 0;
  // Records came since it last looked.
  bool fetched = false;
  bool stopping = false;
  // Last, so that it is joined before anything above goes.
  std::jthread thread;

  // scheduler_thread.cc
  void work();
  void take_cancelled();
  void start_waiting();
  [[nodiscard]] Lane* find_lane(const Request& request);
  [[nodiscard]] const SparsePrompt& sparse_prompt_of(const Request& request) const {
    return request.sparse_prompt ? *request.sparse_prompt : engine.session_options().sparse_prompt;
  }
  void start(WaitingRequest next, Lane& lane);
  Status begin(Running& request);
  [[nodiscard]] std::size_t free_seat() const;
  [[nodiscard]] std::int32_t least_budget() const;
  [[nodiscard]] std::int32_t share(const Lane& lane, std::size_t n_running) const;
  [[nodiscard]] std::int32_t count_prompts() const;
  void share_budget();
  void set_budget(std::int32_t n_tokens);
  void free_frames(std::int32_t n_frames);
  // Requests whose next step can begin; whether all others wait for records.
  struct Batch {
    std::vector<Generation*> ready;
    bool all_wait = true;
  };
  [[nodiscard]] Batch prepare();
  void wait_for_records();
  void note_fetched();
  void step();
  void note_lanes();
  void note_step(const Generated& before, std::size_t n_requests);

  // scheduler_end.cc
  void end(Running& request, const Status& status);
  void break_off(const Status& status);
  void note_queued(double ms);
  void note_token(Running& request);
  void note_turn(const Running& request, const RequestEnd& end);
  void note_end();
  void end_waiting(WaitingRequest& request, const Status& status);
  void end_all();
};

}  // namespace ebb
