// Scheduler: one thread that runs the requests of many clients on one engine.
//
// Requests wait in a bounded queue. Up to n_parallel of them are computed together, step by step: those that decode get
// their row in each step, prompts share the rest (Engine::step). Each request at work has an equal share of the KV
// budget; lanes that are idle keep what is hot until another needs the frames, and are parked then. The queue is fair
// between owners: of those that wait, the owner with the fewest requests at work is next, the longest waiting first.
//
// It does not know HTTP, JSON or templates. Thread rule: all methods from any thread; callbacks come from the
// scheduler's own thread, one at a time, and must neither block, call back nor throw.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/lanes.h"
#include "engine/latencies.h"
#include "engine/request.h"

namespace ebb {

struct SchedulerOptions {
  // Requests computed together. More: each has a smaller share of the budget.
  std::int32_t n_parallel = 4;
  // The most requests of one owner that are computed together; its others wait while this many are at work.
  std::int32_t n_parallel_of_owner = 256;
  // Requests that may wait, of all and of one owner. More: they wait longer than their clients do.
  std::size_t max_queued = 64;
  std::size_t max_queued_of_owner = 64;
  LaneLimits lanes;
  // The options of the sessions it makes; budget_tokens is not looked at.
  SessionOptions session;
  // Where sessions are kept from process to process; none: they end with this one.
  std::optional<LaneFolderOptions> folder;
};

// What one owner may have of what all share, as in SchedulerOptions.
struct OwnerLimits {
  std::int32_t n_parallel = 256;
  std::size_t max_queued = 64;
  std::size_t most_lanes = 256;
  std::function<bool(std::string_view owner)> is_known = [](std::string_view) { return true; };
};

// One of the n_parallel places where requests are computed.
struct Seat {
  bool busy = false;
  RequestId request = 0;
  std::string owner;
  RequestProgress progress;
  GenerationOptions options;
};

// Of one selector's looks, before prompts and at their ends.
struct LookSums {
  std::int64_t n_looks = 0;
  double ms = 0.0;
  // While replies were written too: blocks that it chose, and of those what came back.
  std::int64_t n_chosen = 0;
  std::int64_t n_came = 0;
};

struct SchedulerStats {
  std::size_t n_waiting = 0;
  std::size_t n_running = 0;
  std::size_t n_lanes = 0;
  // Counts of ended requests:
  std::int64_t n_requests = 0;
  std::int64_t n_computed_tokens = 0;  // of their prompts
  std::int64_t n_cached_tokens = 0;    // of their prompts, seen and not computed
  double prompt_ms = 0.0;
  // Counts of their turns (TurnStats, SessionStats); what is parked or deleted later stays counted.
  TokenOriginSums from;
  std::int64_t n_evicted_blocks = 0;
  std::int64_t n_recalled_blocks = 0;
  std::int64_t n_missed_recalls = 0;
  std::int64_t n_late_recalls = 0;
  std::int64_t n_computed_again = 0;
  std::int64_t n_instruction_holes = 0;        // TurnStats::n_instruction_holes
  std::map<std::string_view, LookSums> looks;  // by RecallLook::selector
  std::int64_t n_writing_looks = 0;
  std::int64_t n_writing_found = 0;
  double writing_looks_ms = 0.0;
  // Counts of requests at work too:
  std::int64_t n_generated_tokens = 0;
  double generated_ms = 0.0;
  std::int64_t n_steps = 0;
  std::int64_t n_requests_in_steps = 0;  // a request counts in each of its steps
  std::int64_t n_most_tokens = 0;        // of one session, prompt and reply
  std::int32_t n_hot_tokens = 0;
  // Of all sessions together, now: between prompts, and with what prompts under way have beside it.
  std::int32_t budget_tokens = 0;
  std::int32_t in_force_tokens = 0;
  LaneFolderStats kept;
  Latencies latencies;
};

class Scheduler {
 public:
  // The engine must outlive it, and is its alone. kInvalidArgument for senseless options.
  static Result<std::unique_ptr<Scheduler>> start(Engine& engine, const SchedulerOptions& options);
  // Ends all requests as cancelled.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // kOutOfBudget when the queue is full, kInvalidArgument for sick options; no callback is called then.
  Result<RequestId> submit(Request request);
  // Ends it after the step under way; what was computed stays in its lane. Nothing if it has ended.
  void cancel(RequestId id);
  [[nodiscard]] SchedulerStats stats() const;
  [[nodiscard]] const SchedulerOptions& options() const;
  // Calls `act` between two steps, on the scheduler's thread, and returns after it. Of busy lanes it changes no
  // residency. What it throws is thrown to the caller, and the scheduler goes on.
  void act(const std::function<void(Lanes&)>& act);
  // Calls `look` likewise, for those who only look.
  void inspect(const std::function<void(const Lanes&)>& look);
  [[nodiscard]] std::vector<Seat> seats();
  // Tokens that may be hot, of all sessions together, from now on: what is over leaves at once, but for pins and what
  // is written to. kInvalidArgument outside of what n_parallel requests need and what the engine has frames for.
  Status set_budget(std::int32_t n_tokens);
  // From now on; what an owner has beyond it stays until it is done or makes room.
  void set_owner_limits(const OwnerLimits& limits);
  // Sets the budget of one lane, called by an act; 0: as much as its share.
  Status set_budget(Lane& lane, std::int32_t n_tokens);
  // What a client may pin of one session: a part (kMostPinned) of the least share that a request at work can have, so
  // that every request finds room beside it.
  [[nodiscard]] std::int32_t most_pinned_tokens() const;

 private:
  struct State;
  explicit Scheduler(std::unique_ptr<State> state);
  void run_between_steps(const std::function<void()>& act);
  std::unique_ptr<State> state_;
};

}  // namespace ebb
