// What other threads ask of the scheduler.
#include "engine/scheduler.h"

#include <algorithm>
#include <exception>

#include "engine/scheduler_state.h"

namespace ebb {
namespace {

Seat to_seat(const Running& running) {
  return {.busy = true,
          .request = running.id,
          .owner = running.request.owner,
          .progress = running.progress(),
          .options = running.request.options};
}

}  // namespace

Result<std::unique_ptr<Scheduler>> Scheduler::start(Engine& engine, const SchedulerOptions& options) {
  const std::int32_t most = engine.budget_tokens() / engine.layout().block_size / kMinSessionBlocks;
  if (options.n_parallel < 1 || options.n_parallel > most) {
    return error(Code::kInvalidArgument,
                 "{} requests at once, and the KV budget of {} tokens has room for 1 to {}; raise --kv-budget or lower "
                 "--parallel",
                 options.n_parallel, engine.budget_tokens(), most);
  }
  EBB_RETURN_IF_ERROR(options.session.validate());
  std::unique_ptr<LaneFolder> folder;
  if (options.folder) {
    LaneFolderOptions kept_in = *options.folder;
    kept_in.store = engine.store();
    EBB_ASSIGN_OR_RETURN(folder, LaneFolder::open(kept_in));
  }
  SchedulerOptions held = options;
  held.session.most_pinned = kMostPinned;
  held.lanes.policies.set_own(engine.policy().spec());
  auto state = std::make_unique<State>(engine, held, std::move(folder));
  state->fetch_news->state = state.get();
  engine.set_when_fetched([news = state->fetch_news] {
    const std::scoped_lock lock(news->mutex);
    if (news->state != nullptr) news->state->note_fetched();
  });
  state->lanes.resume_kept();
  state->set_budget(engine.budget_tokens());
  state->thread = std::jthread([s = state.get()] { s->work(); });
  return std::unique_ptr<Scheduler>(new Scheduler(std::move(state)));
}

Scheduler::Scheduler(std::unique_ptr<State> state) : state_(std::move(state)) {}

Scheduler::~Scheduler() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
  const std::scoped_lock lock(state_->fetch_news->mutex);
  state_->fetch_news->state = nullptr;
}

Result<RequestId> Scheduler::submit(Request request) {
  if (!request.writer) {
    EBB_ASSIGN_OR_RETURN(request.writer, Writer::create(state_->engine.vocabulary(), request.options));
  }
  const std::scoped_lock lock(state_->mutex);
  if (state_->stopping) return error(Code::kCancelled, "the server is going down");
  EBB_RETURN_IF_ERROR(state_->waiting.check_room(request.owner));
  const RequestId id = ++state_->n_ids;
  state_->waiting.push({.id = id, .request = std::move(request), .since = Stopwatch()});
  state_->changed.notify_all();
  return id;
}

void Scheduler::cancel(RequestId id) {
  const std::scoped_lock lock(state_->mutex);
  state_->cancelled.insert(id);
  state_->changed.notify_all();
}

const SchedulerOptions& Scheduler::options() const { return state_->options; }

SchedulerStats Scheduler::stats() const {
  // Before the lock that the scheduler's thread needs: the folder may be waiting for a disk.
  LaneFolderStats kept;
  if (state_->folder != nullptr) kept = state_->folder->stats();
  const std::scoped_lock lock(state_->mutex);
  SchedulerStats stats = state_->stats;
  stats.n_waiting = state_->waiting.size();
  stats.kept = kept;
  return stats;
}

void Scheduler::run_between_steps(const std::function<void()>& act) {
  std::mutex mutex;
  std::condition_variable done;
  bool is_done = false;
  std::exception_ptr thrown;
  {
    const std::scoped_lock lock(state_->mutex);
    state_->acts.emplace_back([&] {
      try {
        act();
      } catch (...) {  // the caller's, and not the scheduler's
        thrown = std::current_exception();
      }
      state_->note_lanes();
      const std::scoped_lock done_lock(mutex);
      is_done = true;
      done.notify_all();
    });
    state_->changed.notify_all();
  }
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return is_done; });
  if (thrown) std::rethrow_exception(thrown);
}

void Scheduler::act(const std::function<void(Lanes&)>& act) {
  run_between_steps([&] { act(state_->lanes); });
}

void Scheduler::inspect(const std::function<void(const Lanes&)>& look) {
  run_between_steps([&] { look(state_->lanes); });
}

std::vector<Seat> Scheduler::seats() {
  std::vector<Seat> seats(static_cast<std::size_t>(state_->options.n_parallel));
  run_between_steps([&] {
    for (const Running& running : state_->running) seats[running.seat] = to_seat(running);
  });
  return seats;
}

Status Scheduler::set_budget(std::int32_t n_tokens) {
  const std::int32_t least = state_->least_budget();
  const std::int32_t most = state_->engine.budget_tokens();
  if (n_tokens < least || n_tokens > most) {
    return error(Code::kInvalidArgument,
                 "a KV budget of {} tokens; give {}, which {} requests at once need, to {}, for which there are frames",
                 n_tokens, least, state_->options.n_parallel, most);
  }
  run_between_steps([&] { state_->set_budget(n_tokens); });
  return {};
}

void Scheduler::set_owner_limits(const OwnerLimits& limits) {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->waiting.set_owner_limits(limits.max_queued, limits.n_parallel);
  }
  run_between_steps([&] { state_->lanes.set_owners(limits.most_lanes, limits.is_known); });
}

Status Scheduler::set_budget(Lane& lane, std::int32_t n_tokens) {
  const std::int32_t least = kMinSessionBlocks * state_->engine.layout().block_size;
  if (n_tokens != 0 && (n_tokens < least || n_tokens > state_->engine.budget_tokens())) {
    return error(Code::kInvalidArgument, "a session's KV budget of {} tokens; give {} to {}, or 0 for its share",
                 n_tokens, least, state_->engine.budget_tokens());
  }
  lane.budget_tokens = n_tokens;
  if (!lane.busy && lane.session != nullptr) return state_->lanes.wake(lane, state_->share(lane, 1));
  state_->share_budget();
  return {};
}

std::int32_t Scheduler::most_pinned_tokens() const {
  const std::int32_t block_size = state_->engine.layout().block_size;
  const std::int32_t least_share = stats().budget_tokens / state_->options.n_parallel / block_size * block_size;
  return static_cast<std::int32_t>(kMostPinned * least_share);
}

}  // namespace ebb
