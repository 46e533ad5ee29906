// `ebb bench agent`
#include <iostream>
#include <memory>
#include <optional>
#include <system_error>

#include <CLI/CLI.hpp>

#include "bench/agent.h"
#include "bench/agent_sessions.h"
#include "bench/speed_model.h"
#include "cli/bench.h"
#include "cli/bundled_model.h"
#include "cli/recall_task_flags.h"
#include "cli/terminal.h"
#include "cli/text_file.h"

namespace ebb {
namespace {

constexpr const char* kBenchAgentFooter = R"(Examples:
  ebb bench agent --workload recorded/ --chat-template-file tests/templates/qwen3_style.jinja
  ebb bench agent --workload recorded/ --budgets 2048 -m model.gguf
  ebb bench agent --workload sessions.jsonl --sessions 2 --chat-template-file tests/templates/qwen3_style.jinja --html agent.html

A folder of request bodies (*.json, by name, each with all messages so far): replayed in this process; it goes on with
what agents do next (calls that come back, reminders that move, old tool results cleared, a summary and a new start), and
what a prefix cache without limits would have computed is reckoned. What each --kv-reuse costs in answers: ebb bench edits.

Recorded sessions (FILE.jsonl, or a folder of such: lines with conversation_id, role, content, tools, tool_calls,
tool_results): replayed to `ebb serve` and, with --llama-server, to llama-server beside it, at the same KV memory: time
to the first token, tokens computed, and what was refused, at --shares of the longest prompt. On the way a reminder
moves, the servers are killed, another session comes between, tool results are cleared, and all is summed up and begun
anew. With a model that answers (-m) each session tells facts on the way, in user messages and tool results, and when it
is over each server is asked for each of them behind the whole session. Both servers read the same prompts where the
template shows tools, calls and results (--chat-template-file); else the report says so. `script/bench agent
--workload sessions.jsonl` builds llama-server from the sources of the libllama that ebb is built with, and names it.)";

struct AgentFlags {
  AgentOptions options;
  std::string model;
  std::string workload;
  std::string template_file;
  ReportFlags reports;
  // Of recorded sessions.
  AgentSessionsOptions sessions;
  std::string llama_server;
  std::optional<std::int32_t> n_facts;
  std::string split;
  std::string language;
  std::string cache_folder = default_cache_folder().string();
};

// Sessions are long in the bundled model's vocabulary, and longer than it was trained for.
Result<std::filesystem::path> model_of_sessions(const AgentFlags& flags) {
  EBB_ASSIGN_OR_RETURN(const std::filesystem::path vocabulary_of, given_or_bundled_model(""));
  ProgressBar bar;
  return given_or_agent_model(flags.model, flags.cache_folder, vocabulary_of,
                              [&bar](std::string_view what, double share) { bar.update(what, share); });
}

// Of a model that answers; a random one says nothing.
constexpr std::int32_t kFacts = 8;

bool is_bundled_model(const std::string& model) {
  const Result<std::filesystem::path> bundled = given_or_bundled_model("");
  std::error_code failure;
  return bundled.ok() && std::filesystem::equivalent(model, *bundled, failure);
}

void take_fact_flags(const AgentFlags& flags, AgentFactOptions& facts) {
  facts.n_facts = flags.n_facts.value_or(flags.model.empty() ? 0 : kFacts);
  facts.split = find_recall_split(flags.split).value_or(RecallSplit::kTest);
  facts.language = language_of(flags.language, !is_bundled_model(flags.model));
  if (facts.n_facts > 0 && flags.model.empty()) {
    std::cerr << "ebb: --facts asks a random model, which knows nothing: name one that answers with -m\n";
  }
}

ExitCode bench_sessions(const AgentFlags& flags) {
  AgentSessionsOptions options = flags.sessions;
  const Result<std::filesystem::path> model = model_of_sessions(flags);
  if (!model.ok()) return fail(model.status());
  options.model = *model;
  options.workload = flags.workload;
  options.llama_server = flags.llama_server;
  options.n_threads = flags.options.n_threads;
  take_fact_flags(flags, options.facts);
  if (!flags.template_file.empty()) {
    const Result<std::string> source = read_text(flags.template_file);
    if (!source.ok()) return fail(source.status());
    options.chat_template_file = flags.template_file;
    options.chat_template = *source;
  }
  const Result<AgentSessionsReport> report = run_shown(run_agent_sessions, options);
  if (!report.ok()) return fail(report.status());
  std::cout << agent_sessions_text(*report) << std::flush;
  return write_reports(
      flags.reports, [&](const auto& path) { return write_agent_sessions_json(path, *report); },
      [&](const auto& path) { return write_agent_sessions_html(path, *report); });
}

// A line where a flag is given that the form of the workload does not read.
void note_unread(const CLI::App& command, bool is_of_sessions) {
  const std::vector<const char*> unread =
      is_of_sessions ? std::vector{"--budgets", "--block-size", "--kv-eviction", "--n-gen"}
                     : std::vector{"--llama-server", "--shares",   "--sessions", "--most-tokens", "--facts",
                                   "--split",        "--language", "--seed",     "--cache-dir"};
  for (const char* const flag : unread) {
    if (command.count(flag) == 0) continue;
    std::cerr << "ebb: " << flag << (is_of_sessions ? " is of request bodies" : " is of recorded sessions")
              << ": it has no effect on this workload\n";
  }
}

ExitCode bench_agent(const AgentFlags& flags) {
  AgentOptions options = flags.options;
  const Result<std::filesystem::path> model = given_or_bundled_model(flags.model);
  if (!model.ok()) return fail(model.status());
  options.model = *model;
  options.workload = flags.workload;
  if (!flags.template_file.empty()) {
    const Result<std::string> source = read_text(flags.template_file);
    if (!source.ok()) return fail(source.status());
    options.chat_template = *source;
  }
  const Result<AgentReport> report = run_shown(run_agent, options);
  if (!report.ok()) return fail(report.status());
  std::cout << agent_text(*report) << std::flush;
  return write_reports(
      flags.reports, [&](const auto& path) { return write_agent_json(path, *report); },
      [&](const auto& path) { return write_agent_html(path, *report); });
}

void add_fact_flags(CLI::App& command, AgentFlags& flags) {
  flags.split = std::string(name_of(flags.sessions.facts.split));
  command
      .add_option("--facts", flags.n_facts,
                  fmt::format("Facts that each recorded session tells, asked for when it is over; default: {} with -m, "
                              "0 with a random model, whose answers say nothing",
                              kFacts))
      ->check(CLI::Range(0, 200))
      ->type_name("N");
  add_split_flag(command, flags.split);
  command
      .add_option("--language", flags.language, "Of facts: bundled or english; default: what the model was made for")
      ->check(CLI::IsMember({"bundled", "english"}))
      ->type_name("NAME");
  command.add_option("--seed", flags.sessions.facts.seed, "Another seed tells other facts")
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace

void add_bench_agent(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<AgentFlags>();
  AgentOptions& options = flags->options;
  CLI::App* command =
      bench.add_subcommand("agent", "Coding agents' sessions replayed, beside a prefix cache and llama-server");
  command->footer(kBenchAgentFooter);
  command
      ->add_option("-m,--model", flags->model,
                   "GGUF file; default: the small model that comes with ebb, and for recorded sessions a random one of "
                   "0.3B parameters with its vocabulary")
      ->type_name("FILE");
  command->add_option("--workload", flags->workload, "Folder of recorded request bodies, or recorded sessions")
      ->required()
      ->type_name("PATH");
  command
      ->add_option("--chat-template-file", flags->template_file,
                   "Jinja template for the replay; default: the model's own")
      ->type_name("FILE");
  add_count_flag(*command, "-t,--threads", options.n_threads, {0, 512},
                 "Threads that compute; 0: one per physical core");
  add_counts_flag(*command, "--budgets", options.budgets, "Tokens that may be hot, one replay and reuse each");
  add_count_flag(*command, "--block-size", options.block_size, {8, 128}, "Tokens of a block");
  add_policy_flag(*command, options.policy);
  add_count_flag(*command, "-n,--n-gen", options.n_reply, {1, 1 << 12}, "Tokens of a reply at most");
  add_report_flags(*command, flags->reports);
  command->add_option("--llama-server", flags->llama_server, "Of recorded sessions: the program beside us")
      ->type_name("FILE");
  command
      ->add_option("--shares", flags->sessions.shares,
                   "Of recorded sessions: KV memory, as shares of the longest prompt")
      ->delimiter(',')
      ->check(CLI::Range(0.01, 4.0))
      ->type_name("X,X,...")
      ->capture_default_str();
  add_count_flag(*command, "--sessions", flags->sessions.n_sessions, {0, 1 << 20},
                 "Of recorded sessions the first so many; 0: all");
  add_count_flag(*command, "--most-tokens", flags->sessions.most_tokens, {0, 1 << 24},
                 "Recorded sessions are cut before a prompt would have more; 0: they are not");
  add_fact_flags(*command, *flags);
  command->add_option("--cache-dir", flags->cache_folder, "Where random models are kept")
      ->type_name("FOLDER")
      ->capture_default_str();
  command->callback([flags, command, &action] {
    const bool is_of_sessions = is_session_record(flags->workload);
    note_unread(*command, is_of_sessions);
    action = [flags, is_of_sessions] { return is_of_sessions ? bench_sessions(*flags) : bench_agent(*flags); };
  });
}

}  // namespace ebb
