// The scheduler's thread: begins requests, runs their steps, ends them, and shares the budget out between them.
#include <algorithm>

#include "base/caught.h"
#include "engine/scheduler_state.h"

namespace ebb {
namespace {

// How long a request may be made ready at a stretch while others wait for their step; a bounded wave more at most.
// More: less steps in between, others wait longer. Less: a request with much to bring in waits for more steps of
// others.
constexpr double kPrepareMs = 10.0;

Generated generated(const std::vector<Running>& running) {
  Generated all;
  for (const Running& request : running) {
    all.n_tokens += request.generation->stats().n_generated;
    all.ms += request.generation->stats().decode_ms;
  }
  return all;
}

}  // namespace

RequestProgress Running::progress() const {
  const std::int32_t n_to_compute = std::min(generation->n_to_compute(), n_prompt);
  const std::int32_t n_computed = std::min(generation->n_computed(), n_prompt - n_to_compute);
  const std::int32_t n_cached = std::max(0, n_prompt - n_to_compute - n_computed - generation->n_unseen());
  return {.seat = seat,
          .n_prompt = n_prompt,
          .n_cached = n_cached,
          .n_computed = n_computed,
          .n_done = n_prompt - n_to_compute,
          .elapsed_ms = since.elapsed_ms(),
          .stats = generation->stats()};
}

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
    try {
      take_cancelled();
      start_waiting();
      if (!running.empty()) step();
    } catch (...) {
      break_off(caught("requests were at work"));
    }
  }
  end_all();
}

void Scheduler::State::take_cancelled() {
  std::set<RequestId> ids;
  std::vector<WaitingRequest> gone;
  {
    const std::scoped_lock lock(mutex);
    ids.swap(cancelled);
    gone = waiting.take(ids);
  }
  for (WaitingRequest& request : gone) end_waiting(request, error(Code::kCancelled, "cancelled before it began"));
  for (Running& request : running) {
    if (ids.contains(request.id)) request.generation->finish(FinishReason::kCancelled);
  }
}

// --- beginning ---

std::int32_t Scheduler::State::least_budget() const {
  return options.n_parallel * kMinSessionBlocks * engine.layout().block_size;
}

std::int32_t Scheduler::State::share(const Lane& lane, std::size_t n_running) const {
  const std::int32_t block_size = engine.layout().block_size;
  const std::int32_t equal = budget_tokens / static_cast<std::int32_t>(n_running) / block_size * block_size;
  return lane.budget_tokens > 0 ? std::min(equal, lane.budget_tokens) : equal;
}

void Scheduler::State::set_budget(std::int32_t n_tokens) {
  const FrameBudget budget = FrameBudget::of_tokens(n_tokens, engine.shape());
  budget_tokens = budget.n_tokens(engine.shape());
  const std::int32_t n_frames = budget.n_frames;
  engine.pool().set_limit(n_frames);
  share_budget();
  while (engine.pool().n_over() > 0 && lanes.park_one()) {}
  note_lanes();
}

// Where a prompt is one part, it does not say where its opening ends.
Lane* Scheduler::State::find_lane(const Request& request) {
  const std::string sparse_prompt = sparse_prompt_of(request).text();
  LaneAsk ask{.owner = request.owner,
              .id = request.lane_id,
              .hint = request.lane_hint,
              .history = request.history.tokens(),
              .sparse_prompt = sparse_prompt,
              .same_reply = &request.resuming.same_reply};
  if (request.history.parts().size() > 1) {
    const std::span<const PromptPart> parts = request.history.parts();
    const auto first =
        std::ranges::find_if(parts, [](const PromptPart& part) { return part.source != Source::kSystem; });
    for (auto part = parts.begin(); part != first; ++part) ask.n_instructions += part->n_tokens;
    ask.n_opening = ask.n_instructions + (first != parts.end() ? first->n_tokens : 0);
  }
  return lanes.find_or_open(ask);
}

void Scheduler::State::start_waiting() {
  while (std::cmp_less(running.size(), options.n_parallel)) {
    std::vector<const Request*> at_work;
    for (const Running& request : running) at_work.push_back(&request.request);
    std::optional<WaitingRequest> next;
    {
      const std::scoped_lock lock(mutex);
      next = waiting.take_next(at_work);
    }
    if (!next) return;
    Lane* lane = nullptr;
    try {
      lane = find_lane(next->request);
    } catch (...) {
      end_waiting(*next, caught("its session was looked for"));
      continue;
    }
    if (lane == nullptr) {
      end_waiting(*next, error(Code::kOutOfBudget, "all sessions that may be are at work; try again later"));
      continue;
    }
    start(*std::move(next), *lane);
  }
}

void Scheduler::State::start(WaitingRequest next, Lane& lane) {
  const double queued_ms = next.since.elapsed_ms();
  running.push_back({.id = next.id,
                     .request = std::move(next.request),
                     .seat = free_seat(),
                     .lane = &lane,
                     .queued_ms = queued_ms,
                     .before = lane.stats()});
  note_queued(queued_ms);
  lane.busy = true;
  Running& request = running.back();
  // What was computed behind another text stays with its session, and whose session one without an id is nobody has said.
  if (lane.id.empty()) request.request.resuming.reuse = Reuse::kExact;
  Status status;
  try {
    status = begin(request);
  } catch (...) {
    status = caught("its session was made ready");
    request.generation.reset();
    Lanes::let_go(lane);
  }
  if (!status.ok()) {
    end(request, status);
    running.pop_back();
    share_budget();
  }
  const std::scoped_lock lock(mutex);
  stats.n_running = running.size();
}

Status Scheduler::State::begin(Running& request) {
  Lane& lane = *request.lane;
  EBB_RETURN_IF_ERROR(lanes.wake(lane, share(lane, running.size()), request.request.policy));
  share_budget();
  lane.session->set_sparse_prompt(sparse_prompt_of(request.request));
  EBB_ASSIGN_OR_RETURN(request.generation,
                       Generation::resume(*lane.session, *std::move(request.request.writer), request.request.history,
                                          request.request.options, request.request.resuming));
  request.n_prompt = lane.session->end().value() + request.generation->n_prompt_left();
  return {};
}

// There is one: no more than n_parallel run.
std::size_t Scheduler::State::free_seat() const {
  std::size_t seat = 0;
  while (std::ranges::find(running, seat, &Running::seat) != running.end()) ++seat;
  return seat;
}

// Idle lanes give up their frames, the longest unused first, until so many are free, and each request may have a block
// open.
void Scheduler::State::free_frames(std::int32_t n_frames) {
  const auto has_room = [&] {
    return engine.pool().n_free() >= n_frames && engine.has_open_blocks(static_cast<std::int32_t>(running.size()));
  };
  while (!has_room() && lanes.park_one()) {}
}

// That are computed, or are about to be.
std::int32_t Scheduler::State::count_prompts() const {
  const auto is_in_prompt = [](const Running& request) {
    return request.generation == nullptr || (!request.generation->finished() && request.generation->is_prefilling());
  };
  return static_cast<std::int32_t>(std::ranges::count_if(running, is_in_prompt));
}

// Each has an equal share; prompts have an equal share besides of what the engine has for prompts only. What pins and written
// blocks hold beyond theirs, the others do without.
void Scheduler::State::share_budget() {
  const BlockShape& shape = engine.shape();
  const std::int32_t n_for_prompts =
      std::max(0, engine.prompt_budget_tokens() - budget_tokens) / std::max(1, count_prompts());
  const auto give = [&](const Running& request, std::int32_t n_less) {
    Session& session = *request.lane->session;
    const std::int32_t n_tokens = share(*request.lane, running.size());
    const std::int32_t n_asked = request.request.prompt_budget_tokens.value_or(n_tokens + n_for_prompts);
    const std::int32_t n_more = std::clamp(n_asked - n_tokens, 0, n_for_prompts);
    const FrameBudget prompt = FrameBudget::of_tokens(n_tokens + n_more, shape);
    session.set_prompt_budget({.n_frames = prompt.n_frames - n_less});
    // It may need more; the pool's limit holds then, and a step that finds no room ends its request.
    (void)session.set_budget({.n_frames = FrameBudget::of_tokens(n_tokens, shape).n_frames - n_less});
    return session.n_held_over();
  };
  std::vector<const Running*> others;
  std::int32_t n_over = 0;
  for (const Running& request : running) {
    if (request.lane->session == nullptr || (request.generation != nullptr && request.generation->is_broken()))
      continue;
    const std::int32_t n_held_over = give(request, 0);
    n_over += n_held_over;
    if (n_held_over == 0) others.push_back(&request);
  }
  if (n_over == 0 || others.empty()) return;
  const auto n_less = n_over / static_cast<std::int32_t>(others.size());
  for (const Running* request : others) (void)give(*request, n_less);
}

// --- steps ---

// Brings in what the next steps of requests need, a bounded piece of each at a time, and finds room for those steps.
// Requests that wait for a disk, or have more to bring in, are not in this step.
Scheduler::State::Batch Scheduler::State::prepare() {
  std::vector<Generation*> all;
  for (const Running& request : running) all.push_back(request.generation.get());
  const std::int32_t n_rows = engine.rows_of_prompts(all);
  Batch batch;
  std::int32_t n_frames = 0;
  for (Generation* generation : all) {
    const Stopwatch watch;
    Turn::Ready state = Turn::Ready::kMore;
    while (state == Turn::Ready::kMore && watch.elapsed_ms() < kPrepareMs) {
      free_frames(n_frames + generation->n_frames_from_pool(n_rows));
      state = generation->prepare(n_rows);
    }
    batch.all_wait &= state == Turn::Ready::kWaits;
    if (state != Turn::Ready::kNow) continue;
    batch.ready.push_back(generation);
    // Now it is known what of its prompt is not to be computed.
    const auto request = std::ranges::find(running, generation, [](const Running& r) { return r.generation.get(); });
    if (!std::exchange(request->has_begun, true)) request->request.on_progress(request->progress());
    n_frames += generation->n_frames_from_pool(n_rows);
    free_frames(n_frames);
  }
  return batch;
}

// Until records are there, or there is something else to do.
void Scheduler::State::wait_for_records() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return stopping || fetched || !waiting.empty() || !cancelled.empty() || !acts.empty(); });
  fetched = false;
}

void Scheduler::State::note_fetched() {
  {
    const std::scoped_lock lock(mutex);
    fetched = true;
  }
  changed.notify_all();
}

void Scheduler::State::step() {
  const Batch batch = prepare();
  if (batch.ready.empty()) {
    if (batch.all_wait) wait_for_records();
    return;
  }
  const Generated before = generated(running);
  const std::int32_t n_prompts = count_prompts();
  const Status status = engine.step(batch.ready);
  // What one prompt had for itself, the others have from now on.
  if (engine.prompt_budget_tokens() > budget_tokens && count_prompts() != n_prompts) share_budget();
  // Before any of them ends: who has its answer finds it counted.
  note_step(before, batch.ready.size());
  for (Running& request : running) {
    note_token(request);
    request.request.on_progress(request.progress());
    if (auto chances = request.generation->take_chances(); !chances.empty()) {
      request.request.on_chances(std::move(chances));
    }
    if (const std::string text = request.generation->take_text(); !text.empty()) request.request.on_text(text);
    const bool failed = !status.ok() && std::ranges::find(batch.ready, request.generation.get()) != batch.ready.end();
    if (failed) request.generation->finish(FinishReason::kCancelled);
    if (request.generation->finished()) end(request, failed ? status : request.generation->status());
  }
  const std::size_t n_before = running.size();
  std::erase_if(running, [](const Running& request) { return request.generation->finished(); });
  if (running.size() != n_before) share_budget();
  note_lanes();
  const std::scoped_lock lock(mutex);
  stats.n_running = running.size();
}

void Scheduler::State::note_step(const Generated& before, std::size_t n_requests) {
  const Generated now = generated(running);
  const std::scoped_lock lock(mutex);
  ++stats.n_steps;
  stats.n_requests_in_steps += static_cast<std::int64_t>(n_requests);
  stats.n_generated_tokens += now.n_tokens - before.n_tokens;
  stats.generated_ms += now.ms - before.ms;
  for (const Running& request : running) {
    stats.n_most_tokens = std::max<std::int64_t>(stats.n_most_tokens, request.lane->session->end().value());
  }
}

void Scheduler::State::note_lanes() {
  const std::scoped_lock lock(mutex);
  stats.n_lanes = lanes.all().size();
  // The pool says how much is hot: what several lanes share is there once.
  // A part of a block counts as one.
  const std::int32_t per_block = engine.shape().frames_per_block();
  stats.n_hot_tokens = (engine.pool().n_hot() + per_block - 1) / per_block * engine.shape().block_size;
  stats.budget_tokens = budget_tokens;
  stats.in_force_tokens = FrameBudget{engine.pool().n_in_force()}.n_tokens(engine.shape());
}

}  // namespace ebb
