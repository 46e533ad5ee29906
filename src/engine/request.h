// Request: what a client asks of the scheduler, and what it is told at the end.
//
// It does not know how long it waits or which lane it gets. Thread rule: a value; its callbacks come from the
// scheduler's thread, one at a time, and must neither block nor call back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generation.h"

namespace ebb {

using RequestId = std::uint64_t;

// How far a request is.
struct RequestProgress {
  // Where it is computed: an index of Scheduler::seats().
  std::size_t seat = 0;
  std::int32_t n_prompt = 0;    // tokens of the whole history, as its session holds it
  std::int32_t n_cached = 0;    // of them seen and not computed for this request, as far as is known
  std::int32_t n_computed = 0;  // so far
  std::int32_t n_done = 0;      // that need no more work: computed, seen without that, or holes
  double elapsed_ms = 0.0;      // since it began
  GenerationStats stats;
};

// Over some time: the largest budget that was in force, and the most that was hot at once.
struct BudgetTokens {
  std::int32_t budget = 0;
  std::int32_t peak = 0;
};

struct RequestEnd {
  // Not ok: nothing came of it, or it broke off.
  Status status;
  // Why a reply ended early though it stands, in words for the user: no more of it found room.
  std::string warning;
  FinishReason reason = FinishReason::kLength;
  // That ended the text; empty where none did.
  std::string stop_string;
  GenerationStats stats;
  TurnStats turn;
  SessionStats session;
  std::int32_t n_hot_tokens = 0;
  std::int32_t budget_tokens = 0;
  // What chose what left; empty where nothing began.
  std::string policy;
  // How the prompt was read, as policy/sparse_prompt.h has it; likewise.
  std::string sparse_prompt;
  // While the prompt was computed, and from then on.
  BudgetTokens prompt;
  BudgetTokens reply;
  double queued_ms = 0.0;
};

struct Request {
  // Lanes and saved blocks of different owners never meet.
  std::string owner;
  // The lane of the client's session; empty: found by its history.
  std::string lane_id;
  // LaneAsk::hint.
  std::string lane_hint = {};
  // All of it, from the first token on.
  Prompt history;
  GenerationOptions options;
  // Made of them; none: Scheduler::submit makes it, on the thread that calls.
  std::optional<Writer> writer = std::nullopt;
  ResumeOptions resuming;
  // Chooses what leaves while it is computed; null: its session's own, or where that has none, the engine's.
  std::shared_ptr<const Policy> policy = nullptr;
  // That may be hot while its prompt is computed, where the engine has a prompt budget: at most what it would have without it;
  // 0: no more than its share of the budget.
  std::optional<std::int32_t> prompt_budget_tokens = std::nullopt;
  // How its prompt is read; none: as the engine's sessions read theirs. Engine::check_sparse_prompt() has let it through.
  std::optional<SparsePrompt> sparse_prompt = std::nullopt;
  // When it begins, and after each of its steps; before the step's chances and text.
  std::function<void(const RequestProgress&)> on_progress = [](const RequestProgress&) {};
  // Called with the chances of each token, where options.n_chances asks for them; before its text.
  std::function<void(std::vector<TokenChances>)> on_chances = [](std::vector<TokenChances>) {};
  // Text as it comes.
  std::function<void(std::string_view)> on_text = [](std::string_view) {};
  // Exactly once.
  std::function<void(const RequestEnd&)> on_end = [](const RequestEnd&) {};
};

}  // namespace ebb
