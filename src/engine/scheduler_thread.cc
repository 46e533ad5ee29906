// The scheduler's thread: begins requests, runs their steps, ends them, and shares the budget out between them.
#include <algorithm>

#include "engine/scheduler_state.h"

namespace ebb {
namespace {

// Beyond its history, what a session with holes finds free: filling them leaves that to the prompt's last block and to the
// reply (Generation::resume). Fewer: holes stay that could be filled. More: lanes are parked that could stay.
constexpr std::int32_t kBlocksBesideHoles = 6;

Generated generated(const std::vector<Running>& running) {
  Generated all;
  for (const Running& request : running) {
    all.n_tokens += request.generation->stats().n_generated;
    all.ms += request.generation->stats().decode_ms;
  }
  return all;
}

}  // namespace

// A reply that is held as it was written may have more tokens than the history that says it.
RequestProgress Running::progress() const {
  const std::int32_t n_cached = std::max(0, n_prompt - generation->n_computed() - generation->n_to_compute());
  return {.slot = slot,
          .n_prompt = n_prompt,
          .n_cached = n_cached,
          .n_computed = std::min(generation->n_computed(), n_prompt - n_cached),
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
    take_cancelled();
    start_waiting();
    if (!running.empty()) step();
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
    std::vector<const Request*> at_work;
    for (const Running& request : running) at_work.push_back(&request.request);
    std::optional<WaitingRequest> next;
    {
      const std::scoped_lock lock(mutex);
      next = waiting.take_next(at_work);
    }
    if (!next) return;
    Lane* const lane = lanes.find_or_open(next->request.owner, next->request.lane_id, next->request.all_tokens());
    if (lane == nullptr) {
      end_waiting(*next, error(Code::kOutOfBudget, "all sessions that may be are at work; try again later"));
      continue;
    }
    start(*std::move(next), *lane);
  }
}

void Scheduler::State::start(WaitingRequest next, Lane& lane) {
  Running request{.id = next.id,
                  .request = std::move(next.request),
                  .slot = free_slot(),
                  .lane = &lane,
                  .queued_ms = next.since.elapsed_ms(),
                  .before = lane.stats()};
  for (const HistoryPart& part : request.request.history) {
    request.n_prompt += static_cast<std::int32_t>(part.tokens.size());
  }
  const std::int32_t n_tokens = share(lane, running.size() + 1);
  for (Running& other : running) other.generation->set_budget(share(*other.lane, running.size() + 1));
  free_frames(n_blocks_to_begin(lane, request.n_prompt, n_tokens), running.size() + 1, &lane);
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
        *lane.session, *std::move(request.request.writer), parts, request.request.options, request.request.resuming);
    status = generation.status();
    if (generation.ok()) request.generation = *std::move(generation);
  }
  lane.busy = true;
  running.push_back(std::move(request));
  if (!status.ok()) {
    end(running.back(), status);
    running.pop_back();
    share_budget();
  } else {
    running.back().request.on_progress(running.back().progress());
  }
  const std::scoped_lock lock(mutex);
  stats.n_running = running.size();
}

// There is one: no more than n_parallel run.
std::size_t Scheduler::State::free_slot() const {
  std::size_t slot = 0;
  while (std::ranges::find(running, slot, &Running::slot) != running.end()) ++slot;
  return slot;
}

// Idle lanes give up their frames, the longest unused first, until n_blocks are free, and each request may have a block
// open.
void Scheduler::State::free_frames(std::int32_t n_blocks, std::size_t n_requests, const Lane* for_lane) {
  const auto has_room = [&] {
    return engine.pool().n_free() / n_frames_per_block() >= n_blocks &&
           engine.has_open_blocks(static_cast<std::int32_t>(n_requests));
  };
  while (!has_room() && lanes.park_one(for_lane)) {}
}

// What a lane needs to take in a history: frames for what of it is not hot. What other lanes use too is not its own: it
// gives no frames back when it leaves for something else.
std::int32_t Scheduler::State::n_blocks_to_begin(const Lane& lane, std::int32_t n_history, std::int32_t n_share) const {
  const std::int32_t block_size = engine.layout().block_size;
  const Session* const session = lane.session.get();
  const bool has_holes = session != nullptr ? session->n_hot_blocks() < session->n_blocks() : lane.image.has_value();
  const std::int32_t n_wanted = n_history / block_size + 1 + (has_holes ? kBlocksBesideHoles : 0);
  const std::int32_t n_hot = session != nullptr ? session->n_hot_blocks() : 0;
  const std::int32_t n_own = session != nullptr ? session->n_own_blocks() : 0;
  return std::min(n_wanted - n_hot, n_share / block_size - n_own);
}

// The same of the next step: its tokens, and one block that may be computed again.
std::int32_t Scheduler::State::n_blocks_to_step(const Running& request) const {
  const Session& session = *request.lane->session;
  const std::int32_t block_size = session.block_size();
  const std::int32_t n_tokens =
      std::clamp(request.generation->n_prompt_left(), 1, static_cast<std::int32_t>(engine.runner().max_rows()));
  const std::int32_t n_last = session.end().value() % block_size;
  const std::int32_t room = n_last == 0 ? 0 : block_size - n_last;
  const std::int32_t n_new = (std::max(0, n_tokens - room) + block_size - 1) / block_size;
  const bool has_holes = session.n_hot_blocks() < session.n_blocks();
  const std::int32_t n_share = share(*request.lane, running.size()) / block_size;
  return std::clamp(n_share - session.n_own_blocks(), 0, n_new + (has_holes ? 1 : 0));
}

void Scheduler::State::share_budget() {
  for (Running& request : running) request.generation->set_budget(share(*request.lane, running.size()));
}

// --- steps ---

void Scheduler::State::step() {
  std::int32_t n_blocks = 0;
  for (const Running& request : running) n_blocks += n_blocks_to_step(request);
  free_frames(n_blocks, running.size(), nullptr);
  std::vector<Generation*> generations;
  for (const Running& request : running) generations.push_back(request.generation.get());
  const Generated before = generated(running);
  const Status status = engine.step(generations);
  // Before any of them ends: who has its answer finds it counted.
  note_step(before);
  for (Running& request : running) {
    request.request.on_progress(request.progress());
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
  stats.n_running = running.size();
}

void Scheduler::State::note_step(const Generated& before) {
  const Generated now = generated(running);
  const std::scoped_lock lock(mutex);
  ++stats.n_steps;
  stats.n_requests_in_steps += std::ssize(running);
  stats.n_generated_tokens += now.n_tokens - before.n_tokens;
  stats.generated_ms += now.ms - before.ms;
  for (const Running& request : running) {
    stats.n_most_tokens = std::max<std::int64_t>(stats.n_most_tokens, request.lane->session->end().value());
  }
}

void Scheduler::State::note_lanes() {
  const std::scoped_lock lock(mutex);
  stats.n_lanes = lanes.all().size();
  // Of the pool, where what several lanes share is there once.
  stats.n_hot_tokens = engine.pool().n_hot() / n_frames_per_block() * engine.layout().block_size;
  stats.budget_tokens = budget_tokens;
}

// --- ending ---

void Scheduler::State::end(Running& request, const Status& status) {
  RequestEnd end{.status = status, .queued_ms = request.queued_ms};
  if (request.generation != nullptr) {
    end.reason = request.generation->reason().value_or(FinishReason::kCancelled);
    end.stop_string = request.generation->stop_string();
    end.stats = request.generation->stats();
    end.turn = request.generation->turn_stats();
    // What was said stands: a client that tried again would have all of it computed once more, and end at the same place.
    if (status.code() == Code::kOutOfBudget && end.stats.n_generated > 0) {
      end.warning = status.message();
      end.status = Status();
    }
  }
  if (const Session* session = request.lane->session.get(); session != nullptr) {
    end.session = session->stats();
    end.n_hot_tokens = session->n_hot_tokens();
    end.budget_tokens = session->budget_blocks() * session->block_size();
  }
  request.lane->busy = false;
  if (request.generation != nullptr) note_turn(request, end);
  note_end();
  // Before the answer: who has it finds its session on its way to the disk.
  if (folder != nullptr && request.generation != nullptr) {
    request.generation->save_for_image();
    lanes.keep(*request.lane);
  }
  request.request.on_end(end);
}

void Scheduler::State::note_turn(const Running& request, const RequestEnd& end) {
  const TurnStats& turn = end.turn;
  const std::int32_t n_computed = turn.n_new + turn.n_recomputed;
  const std::scoped_lock lock(mutex);
  stats.n_cached_tokens += std::max(0, request.n_prompt - n_computed);
  stats.prompt_ms += end.stats.prefill_ms;
  stats.n_hot_already += turn.n_hot_already;
  stats.n_shared += turn.n_shared;
  stats.n_recalled_exact += turn.n_recalled_exact;
  stats.n_recalled_approximate += turn.n_recalled_approximate;
  stats.n_recomputed += turn.n_recomputed;
  stats.n_new += turn.n_new;
  stats.n_holes += turn.n_holes;
  // Of a session whose image could not be taken up, counting began anew.
  const auto since = [](std::int64_t now, std::int64_t before) { return std::max<std::int64_t>(0, now - before); };
  stats.n_evicted_blocks += since(end.session.n_evicted_blocks, request.before.n_evicted_blocks);
  stats.n_recalled_blocks += since(end.session.n_recalled_blocks, request.before.n_recalled_blocks);
  stats.n_missed_recalls += since(end.session.n_missed_recalls, request.before.n_missed_recalls);
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
