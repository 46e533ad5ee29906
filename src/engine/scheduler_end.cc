// The end of requests on the scheduler's thread: what they and those who look are told of it, and what is counted.
#include <algorithm>

#include "engine/scheduler_state.h"

namespace ebb {

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

void Scheduler::State::note_queued(double ms) {
  const std::scoped_lock lock(mutex);
  stats.latencies.queue.add(ms / 1000.0);
}

// After a step: a request has at most one token more.
void Scheduler::State::note_token(Running& request) {
  const std::int32_t n_now = request.generation->stats().n_generated;
  if (n_now <= request.n_seen) return;
  {
    const std::scoped_lock lock(mutex);
    if (request.n_seen == 0) {
      stats.latencies.first_token.add((request.queued_ms + request.since.elapsed_ms()) / 1000.0);
    } else {
      stats.latencies.next_token.add(request.since_seen.elapsed_ms() / 1000.0);
    }
  }
  request.n_seen = n_now;
  request.since_seen.restart();
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
  if (turn.acts.recall_ms > 0.0) stats.latencies.recall.add(turn.acts.recall_ms / 1000.0);
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
