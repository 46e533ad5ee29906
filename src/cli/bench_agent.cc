// `ebb bench agent`
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/agent.h"
#include "cli/bench.h"
#include "cli/bundled_model.h"
#include "cli/terminal.h"
#include "cli/text_file.h"

namespace ebb {
namespace {

constexpr const char* kBenchAgentFooter = R"(Examples:
  ebb bench agent --workload recorded/ --chat-template-file tests/templates/qwen3_style.jinja
  ebb bench agent --workload recorded/ --budgets 2048 -m model.gguf

Replays the bodies of a coding agent's chat requests (*.json, by name, each with all messages so far), goes on with what
agents do next (calls that come back, reminders that move, old tool results cleared, a summary and a new start), and
reckons what a prefix cache without limits would have computed. What each --kv-reuse costs in answers: ebb bench edits.)";

struct AgentFlags {
  AgentOptions options;
  std::string model;
  std::string workload;
  std::string template_file;
  ReportFlags reports;
};

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

}  // namespace

void add_bench_agent(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<AgentFlags>();
  AgentOptions& options = flags->options;
  CLI::App* command =
      bench.add_subcommand("agent", "A coding agent's session replayed, beside a prefix cache without limits");
  command->footer(kBenchAgentFooter);
  add_bundled_model_flag(*command, flags->model);
  command->add_option("--workload", flags->workload, "Folder of recorded request bodies")
      ->required()
      ->type_name("FOLDER");
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
  command->callback([flags, &action] { action = [flags] { return bench_agent(*flags); }; });
}

}  // namespace ebb
