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
      lane = lanes.find_or_open(next->request.owner, next->request.lane_id, next->request.history.tokens(),
                                sparse_prompt_of(next->request).text());
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
  running.push_back({.id = next.id,
                     .request = std::move(next.request),
                     .seat = free_seat(),
                     .lane = &lane,
                     .queued_ms = next.since.elapsed_ms(),
                     .before = lane.stats()});
  lane.busy = true;
  Running& request = running.back();
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

// --- ending ---

void Scheduler::State::end(Running& request, const Status& status) {
  RequestEnd end{.status = status, .queued_ms = request.queued_ms};
  if (request.generation != nullptr) {
    end.reason = request.generation->reason().value_or(FinishReason::kCancelled);
    end.stop_string = request.generation->stop_string();
    end.stats = request.generation->stats();
    end.turn = request.generation->turn_stats();
    const auto to_tokens = [&](const BudgetUse& use) {
      const BlockShape& shape = engine.shape();
      return BudgetTokens{.budget = use.budget.n_tokens(shape), .peak = FrameBudget{use.peak_frames}.n_tokens(shape)};
    };
    end.prompt = to_tokens(end.turn.prompt);
    end.reply = to_tokens(end.turn.reply);
    // What was said stands: a client that tried again would have all of it computed again, and end at the same place.
    if (status.code() == Code::kOutOfBudget && end.stats.n_generated > 0) {
      end.warning = status.message();
      end.status = Status();
    }
  }
  if (const Session* session = request.lane->session.get(); session != nullptr) {
    end.session = session->stats();
    end.n_hot_tokens = session->n_hot_tokens();
    end.budget_tokens = session->budget_tokens();
    end.policy = session->policy().spec();
    end.sparse_prompt = session->options().sparse_prompt.text();
  }
  if (request.generation != nullptr && request.generation->is_broken()) Lanes::let_go(*request.lane);
  lanes.release(*request.lane);
  if (request.generation != nullptr) note_turn(request, end);
  note_end();
  // Before the answer: who has it finds its session on its way to the disk.
  if (folder != nullptr && request.generation != nullptr && request.lane->session != nullptr) {
    request.lane->session->save_for_image();
    lanes.keep(*request.lane);
  }
  request.is_told = true;
  request.request.on_end(end);
}

// After what no request alone can answer for: all that are at work end here, and theirs are sessions as if never awake.
void Scheduler::State::break_off(const Status& status) {
  for (Running& request : running) {
    if (request.is_told) continue;
    request.generation.reset();
    Lanes::let_go(*request.lane);
    end(request, status);
  }
  running.clear();
  const std::scoped_lock lock(mutex);
  stats.n_running = 0;
}

void Scheduler::State::note_turn(const Running& request, const RequestEnd& end) {
  const TurnStats& turn = end.turn;
  const std::scoped_lock lock(mutex);
  stats.n_cached_tokens += turn.from.total() - turn.from.n_computed() - turn.from.n_unseen();
  stats.n_computed_tokens += turn.n_computed;
  stats.prompt_ms += end.stats.prefill_ms;
  stats.from += turn.from;
  // Counting began anew in a session whose image could not be taken up.
  const auto since = [](std::int64_t now, std::int64_t before) { return std::max<std::int64_t>(0, now - before); };
  stats.n_evicted_blocks += since(end.session.n_evicted_blocks, request.before.n_evicted_blocks);
  stats.n_recalled_blocks += since(end.session.n_recalled_blocks, request.before.n_recalled_blocks);
  stats.n_missed_recalls += since(end.session.n_missed_recalls, request.before.n_missed_recalls);
  stats.n_late_recalls += turn.n_late;
  stats.n_instruction_holes += turn.n_instruction_holes;
  stats.n_computed_again += turn.n_computed_again;
  for (const RecallLook& look : turn.looks) {
    LookSums& sums = stats.looks[look.selector];
    sums.n_chosen += look.n_chosen();
    sums.n_came += look.n_came();
    ++sums.n_looks;
    sums.ms += look.ms;
  }
  stats.n_writing_looks += turn.writing.n;
  stats.n_writing_found += turn.writing.n_found;
  stats.writing_looks_ms += turn.writing.ms;
}

void Scheduler::State::note_end() {
  const std::scoped_lock lock(mutex);
  ++stats.n_requests;
}

void Scheduler::State::end_waiting(WaitingRequest& request, const Status& status) {
  const RequestEnd end{.status = status, .reason = FinishReason::kCancelled, .queued_ms = request.since.elapsed_ms()};
  note_end();
  request.request.on_end(end);
}

void Scheduler::State::end_all() {
  for (Running& request : running) {
    request.generation->finish(FinishReason::kCancelled);
    end(request, error(Code::kCancelled, "the server is going down"));
  }
  running.clear();
  std::vector<WaitingRequest> left;
  std::vector<std::function<void()>> acts_left;
  {
    const std::scoped_lock lock(mutex);
    left = waiting.take_all();
    acts_left.swap(acts);
  }
  for (WaitingRequest& request : left) end_waiting(request, error(Code::kCancelled, "the server is going down"));
  for (const auto& act : acts_left) act();
}

}  // namespace ebb
