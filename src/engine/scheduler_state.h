// The scheduler's inside: what its thread works on, and what it shares with those who ask (scheduler.cc).
//
// Thread rule: what stands above `mutex` is the scheduler's thread's alone, once that runs; what stands below is whoever's
// has locked it. `engine` and `options` change no more.
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

// A request at work needs room for a chunk, for what it should see, and for what is recalled.
inline constexpr std::int32_t kMinShareBlocks = 4;
// Of its budget, what a session may have pinned. More: a session whose share shrinks has no room for a reply.
inline constexpr double kMostPinned = 0.5;

struct Running {
  RequestId id = 0;
  Request request;
  // Its own as long as it runs.
  std::size_t slot = 0;
  // Tokens of its history.
  std::int32_t n_prompt = 0;
  Lane* lane = nullptr;
  std::unique_ptr<Generation> generation;
  double queued_ms = 0.0;
  // Its session's, before it.
  SessionStats before;
  Stopwatch since = {};

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
                 .n_parallel_of_owner = o.n_parallel_of_owner}) {}

  Engine& engine;
  SchedulerOptions options;
  // Null: sessions end with this process.
  std::unique_ptr<LaneFolder> folder;

  // Of the scheduler's thread alone.
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
  bool stopping = false;
  // Last, so that it is joined before anything above goes.
  std::jthread thread;

  // scheduler_thread.cc
  void work();
  void take_cancelled();
  void start_waiting();
  void start(WaitingRequest next, Lane& lane);
  [[nodiscard]] std::size_t free_slot() const;
  [[nodiscard]] std::int32_t n_frames_per_block() const;
  [[nodiscard]] std::int32_t least_budget() const;
  [[nodiscard]] std::int32_t share(const Lane& lane, std::size_t n_running) const;
  void share_budget();
  void set_budget(std::int32_t n_tokens);
  void free_frames(std::int32_t n_blocks, std::size_t n_requests, const Lane* for_lane);
  [[nodiscard]] std::int32_t n_blocks_to_begin(const Lane& lane, std::int32_t n_history, std::int32_t n_share) const;
  [[nodiscard]] std::int32_t n_blocks_to_step(const Running& request) const;
  void step();
  void note_lanes();
  void end(Running& request, const Status& status);
  void note_step(const Generated& before);
  void note_turn(const Running& request, const RequestEnd& end);
  void note_end();
  void end_waiting(WaitingRequest& request, const Status& status);
  void end_all();
};

}  // namespace ebb
