// The agent bench: a coding agent's recorded requests, replayed to the routes of `ebb serve`, held against a prefix
// cache without limits.
//
// The agent says its whole history each time. After the recorded requests the session goes on with what agents do next:
// the model's own reply comes back, its calls' arguments written anew; a reminder moves; old tool results are cleared;
// a request is sent again; the conversation is summed up and begun anew. Side requests share the session's header. The
// prefix cache is reckoned, not run: it keeps every prompt and reply of the run for ever, and computes what is behind
// the longest of them that a prompt begins with, token for token, but at least one.
//
// What approximate reuse costs in answers: bench/edits.h.
// Thread rule: one run at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "policy/policy.h"
#include "session/turn.h"

namespace ebb {

struct AgentOptions {
  std::filesystem::path model;
  // Request bodies *.json, in the order of their names.
  std::filesystem::path workload;
  // Jinja; empty: the model's own.
  std::string chat_template;
  // 0: one per physical core.
  std::int32_t n_threads = 0;
  std::int32_t block_size = 64;
  // What leaves, as --kv-eviction has it.
  std::string policy{kDefaultPolicy};
  std::vector<std::int32_t> budgets = {16384, 4096};
  // Tokens of a reply at most.
  std::int32_t n_reply = 48;
  // What is going on, and the share of the whole run that is done, 0..1.
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

struct AgentStep {
  std::string name;
  std::int32_t n_prompt = 0;
  std::int32_t n_computed = 0;  // by a forward pass, also what has left again
  std::int32_t n_new = 0;       // of those, what was hot in any head when the reply began
  std::int32_t n_exact = 0;     // hot, shared or recalled
  std::int32_t n_partly = 0;    // hot in some heads
  std::int32_t n_approximate = 0;
  std::int32_t n_holes = 0;
  std::int32_t n_prefix_cache = 0;  // what it would compute
  std::int32_t peak_hot_tokens = 0;
  double ms = 0.0;
};

struct AgentRun {
  std::int32_t budget_tokens = 0;
  Reuse reuse = Reuse::kExact;
  std::vector<AgentStep> steps;

  [[nodiscard]] std::int64_t n_computed() const;
  [[nodiscard]] std::int64_t n_prefix_cache() const;
  // Tokens that were computed over those that a prefix cache would compute.
  [[nodiscard]] double ratio() const;
  // That ratio without the first request, which both compute whole.
  [[nodiscard]] double later_ratio() const;
};

struct AgentReport {
  std::string model;
  std::int32_t block_size = 0;
  std::string policy;
  std::vector<AgentRun> runs;
};

Result<AgentReport> run_agent(const AgentOptions& options);
// One session, with the workload's bodies.
Result<AgentRun> replay_agent(const AgentOptions& options, std::int32_t budget_tokens, Reuse reuse);

[[nodiscard]] std::string agent_text(const AgentReport& report);
Status write_agent_json(const std::filesystem::path& path, const AgentReport& report);
Status write_agent_html(const std::filesystem::path& path, const AgentReport& report);

}  // namespace ebb
