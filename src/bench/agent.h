// The agent bench: a coding agent's recorded requests, replayed to the routes of `ebb serve`, held against a prefix
// cache without limits.
//
// The agent says its whole history each time. After the recorded requests the session goes on with what agents do next:
// the model's own reply comes back, its calls' arguments written anew; a reminder moves; old tool results are cleared;
// a request is sent again; the conversation is summed up and begun anew. Side requests share the session's header. The
// prefix cache is reckoned, not run: it keeps every prompt and reply of the run for ever, and computes what is behind
// the longest of them that a prompt begins with, token for token, but at least one.
//
// The second part counts what approximate reuse costs in answers, to questions about what an edit left, changed and
// took.
// Thread rule: one run at a time.
#pragma once

#include <array>
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
  // Questions of each arm and kind of the second part; 0: without it.
  std::int32_t n_questions = 60;
  // Tokens of each file that the second part's histories have before the edit, in it, and behind it.
  std::int32_t n_section = 300;
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

// What is asked for after an edit in the middle of a history, and what is right then.
enum class EditQuestion : std::uint8_t {
  kBehind,   // a fact behind text that was cleared: that it is said
  kChanged,  // a fact that the edit changed: that it is said as it is now
  kCleared,  // a fact that the edit took away: that it is not said
};
inline constexpr std::size_t kEditQuestions = 3;

// One way of going on behind an edit.
struct EditArm {
  std::string_view name;
  Reuse reuse = Reuse::kExact;
  std::int32_t n_recomputed = 0;
  std::int32_t n_asked = 0;  // of each kind
  std::array<std::int32_t, kEditQuestions> n_right = {};
  std::int64_t n_prompt = 0;    // of the questions' requests
  std::int64_t n_computed = 0;  // of those
  std::int64_t n_approximate = 0;
};

struct AgentReport {
  std::string model;
  std::int32_t block_size = 0;
  std::string policy;
  std::vector<AgentRun> runs;
  std::vector<EditArm> edits;
};

Result<AgentReport> run_agent(const AgentOptions& options);
// One session, with the workload's bodies.
Result<AgentRun> replay_agent(const AgentOptions& options, std::int32_t budget_tokens, Reuse reuse);
// The second part.
Result<std::vector<EditArm>> ask_behind_edits(const AgentOptions& options);

[[nodiscard]] std::string agent_text(const AgentReport& report);
Status write_agent_json(const std::filesystem::path& path, const AgentReport& report);
Status write_agent_html(const std::filesystem::path& path, const AgentReport& report);

}  // namespace ebb
