#include "engine/scheduler.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/clock.h"

namespace ebb {
namespace {

// A request at work needs room for a chunk, for what it should see, and for what is recalled.
constexpr std::int32_t kMinShareBlocks = 4;

struct Waiting {
  RequestId id = 0;
  Request request;
  Stopwatch since;
};

struct Running {
  RequestId id = 0;
  Request request;
  Lane* lane = nullptr;
  std::unique_ptr<Generation> generation;
  double queued_ms = 0.0;
};

std::vector<Token> all_tokens(const Request& request) {
  std::vector<Token> tokens;
  for (const HistoryPart& part : request.history) tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
  return tokens;
}

Slot to_slot(const Running& running) {
  const Generation& generation = *running.generation;
  const auto n_prompt = static_cast<std::int32_t>(all_tokens(running.request).size());
  return {.busy = true,
          .request = running.id,
          .owner = running.request.owner,
          .n_prompt = n_prompt,
          .n_cached = n_prompt - generation.stats().n_prompt,
          .n_processed = generation.stats().n_prompt - generation.n_prompt_left(),
          .n_generated = generation.stats().n_generated,
          .options = running.request.options};
}

std::int64_t n_generated(const std::vector<Running>& running) {
  std::int64_t n = 0;
  for (const Running& request : running) n += request.generation->stats().n_generated;
  return n;
}

}  // namespace

struct Scheduler::State {
  State(Engine& e, const SchedulerOptions& o, std::unique_ptr<LaneFolder> f)
      : engine(e),
        options(o),
        folder(std::move(f)),
        lanes(e, o.session, o.lanes, folder.get()),
        budget_tokens(e.budget_tokens()) {}

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
  std::deque<Waiting> waiting;
  std::set<RequestId> cancelled;
  std::vector<std::function<void()>> acts;
  SchedulerStats stats;
  RequestId n_ids = 0;
  bool stopping = false;
  // Last, so that it is joined before anything above goes.
  std::jthread thread;

  void work();
  void take_cancelled();
  void start_waiting();
  [[nodiscard]] std::optional<Waiting> take_next();
  void start(Waiting next, Lane& lane);
  [[nodiscard]] std::int32_t n_frames_per_block() const;
  [[nodiscard]] std::int32_t least_budget() const;
  [[nodiscard]] std::int32_t share(const Lane& lane, std::size_t n_running) const;
  void share_budget();
  void set_budget(std::int32_t n_tokens);
  void free_frames(std::int32_t n_tokens, const Lane* for_lane);
  void step();
  void note_lanes();
  void end(Running& request, const Status& status);
  void note_end(const RequestEnd& end, std::int32_t n_computed, std::int32_t n_cached);
  void end_waiting(Waiting& request, const Status& status);
  void end_all();
};

Result<std::unique_ptr<Scheduler>> Scheduler::start(Engine& engine, const SchedulerOptions& options) {
  const std::int32_t most = engine.budget_tokens() / engine.layout().block_size / kMinShareBlocks;
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
  auto state = std::make_unique<State>(engine, options, std::move(folder));
  state->lanes.resume_kept(options.is_known_owner);
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
}

Result<RequestId> Scheduler::submit(Request request) {
  const std::scoped_lock lock(state_->mutex);
  if (state_->stopping) return error(Code::kCancelled, "the server is going down");
  if (state_->waiting.size() >= state_->options.max_queued) {
    return error(Code::kOutOfBudget, "{} requests are waiting, as many as may; try again later",
                 state_->waiting.size());
  }
  const auto n_own = static_cast<std::size_t>(
      std::ranges::count(state_->waiting, request.owner, [](const Waiting& w) { return w.request.owner; }));
  if (n_own >= state_->options.max_queued_of_owner) {
    return error(Code::kOutOfBudget, "{} requests of this key are waiting, as many as may; try again later", n_own);
  }
  const RequestId id = ++state_->n_ids;
  state_->waiting.push_back({.id = id, .request = std::move(request), .since = Stopwatch()});
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
  const std::scoped_lock lock(state_->mutex);
  SchedulerStats stats = state_->stats;
  stats.n_waiting = state_->waiting.size();
  if (state_->folder != nullptr) stats.kept = state_->folder->stats();
  return stats;
}

void Scheduler::run_between_steps(const std::function<void()>& act) {
  std::mutex mutex;
  std::condition_variable done;
  bool is_done = false;
  {
    const std::scoped_lock lock(state_->mutex);
    state_->acts.emplace_back([&] {
      act();
      const std::scoped_lock done_lock(mutex);
      is_done = true;
      done.notify_all();
    });
    state_->changed.notify_all();
  }
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return is_done; });
}

void Scheduler::act(const std::function<void(Lanes&)>& act) {
  run_between_steps([&] {
    act(state_->lanes);
    state_->note_lanes();
  });
}

void Scheduler::inspect(const std::function<void(const Lanes&)>& look) {
  run_between_steps([&] { look(state_->lanes); });
}

std::vector<Slot> Scheduler::slots() {
  std::vector<Slot> slots(static_cast<std::size_t>(state_->options.n_parallel));
  run_between_steps([&] {
    for (std::size_t i = 0; i < state_->running.size(); ++i) slots[i] = to_slot(state_->running[i]);
  });
  return slots;
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

Status Scheduler::set_budget(Lane& lane, std::int32_t n_tokens) {
  const std::int32_t least = kMinShareBlocks * state_->engine.layout().block_size;
  if (n_tokens != 0 && (n_tokens < least || n_tokens > state_->engine.budget_tokens())) {
    return error(Code::kInvalidArgument, "a session's KV budget of {} tokens; give {} to {}, or 0 for its share",
                 n_tokens, least, state_->engine.budget_tokens());
  }
  lane.budget_tokens = n_tokens;
  if (!lane.busy && lane.session != nullptr) return state_->lanes.wake(lane, state_->share(lane, 1));
  state_->share_budget();
  return {};
}

std::int32_t Scheduler::least_share() const {
  const std::int32_t block_size = state_->engine.layout().block_size;
  return stats().budget_tokens / state_->options.n_parallel / block_size * block_size;
}

// --- the thread ---

void Scheduler::State::work() {
  while (true) {
    std::vector<std::function<void()>> acts_now;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] {
        return stopping || !running.empty() || !waiting.empty() || !cancelled.empty() || !acts.empty();
      });
      acts_now.swap(acts);
      if (stopping && acts_now.empty()) break;
    }
    for (const auto& act : acts_now) act();
    take_cancelled();
    start_waiting();
    if (!running.empty()) step();
  }
  end_all();
}

void Scheduler::State::take_cancelled() {
  std::set<RequestId> ids;
  std::vector<Waiting> gone;
  {
    const std::scoped_lock lock(mutex);
    ids.swap(cancelled);
    for (Waiting& request : waiting) {
      if (ids.contains(request.id)) gone.push_back(std::move(request));
    }
    std::erase_if(waiting, [&](const Waiting& request) { return ids.contains(request.id); });
  }
  for (Waiting& request : gone) end_waiting(request, error(Code::kCancelled, "cancelled before it began"));
  for (Running& request : running) {
    if (ids.contains(request.id)) request.generation->finish(FinishReason::kCancelled);
  }
}

// --- beginning ---

std::int32_t Scheduler::State::n_frames_per_block() const {
  return engine.pool().n_frames() / (engine.budget_tokens() / engine.layout().block_size);
}

std::int32_t Scheduler::State::least_budget() const {
  return options.n_parallel * kMinShareBlocks * engine.layout().block_size;
}

std::int32_t Scheduler::State::share(const Lane& lane, std::size_t n_running) const {
  const std::int32_t block_size = engine.layout().block_size;
  const std::int32_t equal = budget_tokens / static_cast<std::int32_t>(n_running) / block_size * block_size;
  return lane.budget_tokens > 0 ? std::min(equal, lane.budget_tokens) : equal;
}

void Scheduler::State::set_budget(std::int32_t n_tokens) {
  const std::int32_t n_blocks = n_tokens / engine.layout().block_size;
  budget_tokens = n_blocks * engine.layout().block_size;
  const std::int32_t n_frames = n_blocks * n_frames_per_block();
  engine.pool().set_limit(n_frames);
  share_budget();
  while (engine.pool().n_hot() > n_frames && lanes.park_one()) {}
  note_lanes();
}

void Scheduler::State::start_waiting() {
  while (std::cmp_less(running.size(), options.n_parallel)) {
    std::optional<Waiting> next = take_next();
    if (!next) return;
    Lane* const lane = lanes.find_or_open(next->request.owner, next->request.lane_id, all_tokens(next->request));
    if (lane == nullptr) {
      end_waiting(*next, error(Code::kOutOfBudget, "all sessions that may be are at work; try again later"));
      continue;
    }
    start(*std::move(next), *lane);
  }
}

// The next request whose lane is free, and whose owner may have one more at work: of the owner with the fewest at work, the one that waits longest.
std::optional<Waiting> Scheduler::State::take_next() {
  std::map<std::string_view, std::size_t> n_at_work;
  for (const Running& request : running) ++n_at_work[request.request.owner];
  const auto is_free = [&](const Waiting& candidate) {
    return candidate.request.lane_id.empty() || std::ranges::none_of(running, [&](const Running& request) {
             return request.request.owner == candidate.request.owner &&
                    request.request.lane_id == candidate.request.lane_id;
           });
  };
  const std::scoped_lock lock(mutex);
  auto best = waiting.end();
  for (auto candidate = waiting.begin(); candidate != waiting.end(); ++candidate) {
    if (!is_free(*candidate)) continue;
    if (std::cmp_greater_equal(n_at_work[candidate->request.owner], options.n_parallel_of_owner)) continue;
    if (best == waiting.end() || n_at_work[candidate->request.owner] < n_at_work[best->request.owner]) best = candidate;
  }
  if (best == waiting.end()) return std::nullopt;
  Waiting next = std::move(*best);
  waiting.erase(best);
  return next;
}

void Scheduler::State::start(Waiting next, Lane& lane) {
  Running request{
      .id = next.id, .request = std::move(next.request), .lane = &lane, .queued_ms = next.since.elapsed_ms()};
  const std::int32_t n_tokens = share(lane, running.size() + 1);
  for (Running& other : running) other.generation->set_budget(share(*other.lane, running.size() + 1));
  free_frames(n_tokens, &lane);
  Status status = lanes.wake(lane, n_tokens);
  if (status.ok()) {
    std::vector<PromptPart> parts;
    for (const HistoryPart& part : request.request.history) {
      parts.push_back({.tokens = part.tokens,
                       .source = part.source,
                       .name = part.name,
                       .priority = part.priority,
                       .pinned = part.pinned});
    }
    Result<std::unique_ptr<Generation>> generation = Generation::resume(
        *lane.session, engine.vocabulary(), parts, request.request.options, request.request.resuming);
    status = generation.status();
    if (generation.ok()) request.generation = *std::move(generation);
  }
  lane.busy = true;
  running.push_back(std::move(request));
  if (!status.ok()) {
    end(running.back(), status);
    running.pop_back();
    share_budget();
  }
  const std::scoped_lock lock(mutex);
  stats.n_running = running.size();
}

// Idle lanes give up their frames, the longest unused first, until a request can have n_tokens hot.
void Scheduler::State::free_frames(std::int32_t n_tokens, const Lane* for_lane) {
  const auto has_room = [&] {
    // What other lanes use too gives no frames back when it leaves.
    const std::int32_t held =
        for_lane != nullptr && for_lane->session != nullptr ? for_lane->session->n_own_blocks() : 0;
    const std::int32_t n_blocks = n_tokens / engine.layout().block_size;
    return engine.pool().n_free() / n_frames_per_block() + held >= n_blocks;
  };
  while (!has_room() && lanes.park_one(for_lane)) {}
}

void Scheduler::State::share_budget() {
  for (Running& request : running) request.generation->set_budget(share(*request.lane, running.size()));
}

// --- steps ---

void Scheduler::State::step() {
  // Whose budget grew, or whose turn is new, finds frames where idle lanes hold them.
  for (const Running& request : running) free_frames(share(*request.lane, running.size()), request.lane);
  std::vector<Generation*> generations;
  for (const Running& request : running) generations.push_back(request.generation.get());
  const std::int64_t n_generated_before = n_generated(running);
  const Status status = engine.step(generations);
  {
    // Before any of them ends: who has its answer finds it counted.
    const std::scoped_lock lock(mutex);
    stats.n_generated_tokens += n_generated(running) - n_generated_before;
  }
  for (Running& request : running) {
    if (auto chances = request.generation->take_chances(); !chances.empty()) {
      request.request.on_chances(std::move(chances));
    }
    if (const std::string text = request.generation->take_text(); !text.empty()) request.request.on_text(text);
    if (!status.ok()) request.generation->finish(FinishReason::kCancelled);
    if (request.generation->finished()) end(request, status.ok() ? request.generation->status() : status);
  }
  const std::size_t n_before = running.size();
  std::erase_if(running, [](const Running& request) { return request.generation->finished(); });
  if (running.size() != n_before) share_budget();
  note_lanes();
  const std::scoped_lock lock(mutex);
  ++stats.n_steps;
  stats.n_running = running.size();
}

void Scheduler::State::note_lanes() {
  std::int32_t n_hot = 0;
  for (const Lane& lane : lanes.all()) n_hot += lane.session != nullptr ? lane.session->n_hot_tokens() : 0;
  const std::scoped_lock lock(mutex);
  stats.n_lanes = lanes.all().size();
  stats.n_hot_tokens = n_hot;
  stats.budget_tokens = budget_tokens;
}

// --- ending ---

void Scheduler::State::end(Running& request, const Status& status) {
  RequestEnd end{.status = status, .queued_ms = request.queued_ms};
  if (request.generation != nullptr) {
    end.reason = request.generation->reason().value_or(FinishReason::kCancelled);
    end.stats = request.generation->stats();
    end.turn = request.generation->turn_stats();
  }
  std::int32_t n_history = 0;
  for (const HistoryPart& part : request.request.history) n_history += static_cast<std::int32_t>(part.tokens.size());
  if (const Session* session = request.lane->session.get(); session != nullptr) {
    end.session = session->stats();
    end.n_hot_tokens = session->n_hot_tokens();
    end.budget_tokens = session->budget_blocks() * session->block_size();
  }
  request.lane->busy = false;
  const std::int32_t n_computed = end.turn.n_new + end.turn.n_recomputed;
  note_end(end, n_computed, std::max(0, n_history - n_computed));
  // Before the answer: who has it finds its session on its way to the disk.
  if (folder != nullptr && request.generation != nullptr) {
    request.generation->save_for_image();
    lanes.keep(*request.lane);
  }
  request.request.on_end(end);
}

void Scheduler::State::note_end(const RequestEnd& end, std::int32_t n_computed, std::int32_t n_cached) {
  const std::scoped_lock lock(mutex);
  ++stats.n_requests;
  stats.n_prompt_tokens += n_computed;
  stats.n_cached_tokens += n_cached;
  stats.prompt_ms += end.stats.prefill_ms;
  stats.generated_ms += end.stats.decode_ms;
}

void Scheduler::State::end_waiting(Waiting& request, const Status& status) {
  const RequestEnd end{.status = status, .reason = FinishReason::kCancelled, .queued_ms = request.since.elapsed_ms()};
  note_end(end, 0, 0);
  request.request.on_end(end);
}

void Scheduler::State::end_all() {
  for (Running& request : running) {
    request.generation->finish(FinishReason::kCancelled);
    end(request, error(Code::kCancelled, "the server is going down"));
  }
  running.clear();
  std::deque<Waiting> left;
  std::vector<std::function<void()>> acts_left;
  {
    const std::scoped_lock lock(mutex);
    left.swap(waiting);
    acts_left.swap(acts);
  }
  for (Waiting& request : left) end_waiting(request, error(Code::kCancelled, "the server is going down"));
  for (const auto& act : acts_left) act();
}

}  // namespace ebb
