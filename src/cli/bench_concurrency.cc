// `ebb bench concurrency`
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/concurrency.h"
#include "cli/bench.h"
#include "cli/bundled_model.h"
#include "cli/terminal.h"

namespace ebb {
namespace {

constexpr const char* kBenchConcurrencyFooter = R"(Examples:
  ebb bench concurrency                           the bundled model, 1 to 16 sessions; half a minute or so
  ebb bench concurrency -m model.gguf --counts 1,4 --system 2048
  ebb bench concurrency --html concurrency.html

Sessions decode together, a row each in one step; libllama decodes as many sequences in one batch, in turn with ebb, round
by round. All begin with the same system prompt, whose K and V ebb's sessions share.)";

struct ConcurrencyFlags {
  ConcurrencyOptions options;
  std::string model;
  std::string kv_type = "f16";
  ReportFlags reports;
};

ExitCode bench_concurrency(const ConcurrencyFlags& flags) {
  ConcurrencyOptions options = flags.options;
  const Result<std::filesystem::path> model = given_or_bundled_model(flags.model);
  if (!model.ok()) return fail(model.status());
  options.model = *model;
  options.kv_type = find_row_type(flags.kv_type).value_or(RowType::kF16);  // CLI11 let only known names through
  const Result<ConcurrencyReport> report = run_shown(run_concurrency, options);
  if (!report.ok()) return fail(report.status());
  std::cout << concurrency_text(*report) << std::flush;
  return write_reports(
      flags.reports, [&](const auto& path) { return write_concurrency_json(path, *report); },
      [&](const auto& path) { return write_concurrency_html(path, *report); });
}

}  // namespace

void add_bench_concurrency(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<ConcurrencyFlags>();
  ConcurrencyOptions& options = flags->options;
  CLI::App* command = bench.add_subcommand("concurrency", "Sessions that decode together, beside libllama's batches");
  command->footer(kBenchConcurrencyFooter);
  add_bundled_model_flag(*command, flags->model);
  add_count_flag(*command, "-t,--threads", options.n_threads, {0, 512},
                 "Threads of both sides; 0: one per physical core");
  add_counts_flag(*command, "--counts", options.counts, "Numbers of sessions");
  add_count_flag(*command, "--repeat", options.n_rounds, {1, 1000},
                 "Rounds of each measurement; the table shows their median");
  add_count_flag(*command, "--system", options.n_system, {1, 1 << 16}, "Tokens that all sessions begin with");
  add_count_flag(*command, "--own", options.n_own, {1, 1 << 16}, "Tokens of each session's own history");
  add_count_flag(*command, "-n,--n-gen", options.n_decode, {1, 1 << 16}, "Tokens that each session decodes in a round");
  add_policy_flag(*command, options.policy);
  add_kv_type_flag(*command, flags->kv_type, "Type of K and V on both sides");
  add_report_flags(*command, flags->reports);
  command->callback([flags, &action] { action = [flags] { return bench_concurrency(*flags); }; });
}

}  // namespace ebb
