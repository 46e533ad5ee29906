// The agent bench on recorded sessions: what agents wait for and what is computed for them, by ebb and by llama-server in one run.
//
// Both are programs of their own with the same model, template, threads and KV memory, asked over sockets; each request
// (bench/recorded_sessions.h) is asked of each in turn, so that what disturbs the machine disturbs all. A request is for one token:
// what it takes is the time to the first one. Facts that are told on the way (bench/agent_facts.h) are asked for once a session is over,
// each behind the same history. Memory is counted in tokens that may be in KV at once: so many as the longest prompt has, questions
// included, and shares of that.
// Thread rule: one run at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/agent_facts.h"
#include "bench/recorded_sessions.h"
#include "bench/statistics.h"

namespace ebb {

struct AgentSessionsOptions {
  std::filesystem::path model;
  // A file or folder of recorded sessions.
  std::filesystem::path workload;
  // Jinja, as a file that both servers get and as its text; empty: the model's own.
  std::filesystem::path chat_template_file;
  std::string chat_template;
  // The peer; empty: ours alone.
  std::filesystem::path llama_server;
  // Where servers log and save, in a folder of its own that is removed.
  std::filesystem::path work_folder = std::filesystem::temp_directory_path();
  // 0: one per physical core.
  std::int32_t n_threads = 0;
  // KV memory, as shares of the longest prompt.
  std::vector<double> shares = {1.0, 0.5, 0.25};
  // Of the record's sessions the first so many; 0: all.
  std::int32_t n_sessions = 0;
  // Sessions are cut before a prompt would have more tokens, and what happens to them happens at the places of what is left; 0: they are not.
  std::int32_t most_tokens = 0;
  // Told once they are cut.
  AgentFactOptions facts;
  // What is going on, and the share of the whole run that is done, 0..1.
  std::function<void(std::string_view, double)> progress = [](std::string_view, double) {};
};

struct AgentAnswer {
  std::string refusal;  // empty: it was answered
  double ms = 0.0;
  std::int64_t n_prompt = 0;
  std::int64_t n_computed = 0;
};

struct AskedRequest {
  AgentEvent event = AgentEvent::kPlain;
  std::string session;
  std::int32_t n_tokens = 0;         // as ebb renders it
  std::vector<AgentAnswer> answers;  // one of each contender
};

enum class FactVerdict : std::uint8_t { kRight, kWrong, kRefused };
[[nodiscard]] std::string_view name_of(FactVerdict verdict);

struct FactReply {
  FactVerdict verdict = FactVerdict::kWrong;
  std::string text;  // what was replied, or why nothing was
};

struct AskedFact {
  AgentFact fact;
  std::string session;
  std::int32_t n_tokens = 0;       // of the prompt, as ebb renders it
  std::vector<FactReply> replies;  // one of each contender
};

// All sessions at one amount of memory.
struct AgentMemory {
  double share = 0.0;
  std::int32_t n_tokens = 0;
  std::vector<AskedRequest> asked;
  std::vector<AskedFact> facts;
  std::vector<std::size_t> peak_resident_bytes;  // by contender, the most of its processes
};

struct AgentSessionsReport {
  std::string model;
  std::int32_t n_threads = 0;
  std::int32_t n_sessions = 0;
  // "ebb" first; the peer is last.
  std::vector<std::string> contenders;
  bool has_peer = false;
  std::vector<AgentMemory> memories;

  // Of what both answered, ours over the peer's, in pairs; nothing where there is no peer or no such pair.
  [[nodiscard]] std::optional<QuantileRatio> ratio(const AgentMemory& memory, std::size_t contender,
                                                   double share) const;
};

// The times of what a contender answered, of one event or of all.
[[nodiscard]] std::vector<double> times_of(const AgentMemory& memory, std::size_t contender,
                                           std::optional<AgentEvent> event = std::nullopt);

// What a contender said of facts: of all, or of those that were cleared on the way. What is neither right nor refused is wrong.
struct FactCounts {
  std::int32_t n_asked = 0;
  std::int32_t n_right = 0;
  std::int32_t n_refused = 0;
};
enum class CountedFacts : std::uint8_t { kAll, kCleared };
[[nodiscard]] FactCounts count_facts(const AgentMemory& memory, std::size_t contender, CountedFacts of);

Result<AgentSessionsReport> run_agent_sessions(const AgentSessionsOptions& options);

[[nodiscard]] std::string agent_sessions_text(const AgentSessionsReport& report);
Status write_agent_sessions_json(const std::filesystem::path& path, const AgentSessionsReport& report);
Status write_agent_sessions_html(const std::filesystem::path& path, const AgentSessionsReport& report);

}  // namespace ebb
