// `ebb bench fidelity`.
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/fidelity.h"
#include "cli/bench.h"
#include "cli/bundled_model.h"
#include "cli/terminal.h"

namespace ebb {
namespace {

constexpr const char* kFidelityFooter = R"(Examples:
  ebb bench fidelity                            the bundled model; some minutes on 2 cores
  ebb bench fidelity --spans 64 --distances 1024,8192 --kv-types f16 --html fidelity.html
  ebb bench fidelity -m model.gguf --facts 8 --absences moment

Sessions read sections, each of which states one fact. The blocks around one fact are evicted and come back in one of
these ways; then the same tokens are decoded behind them in every arm, and the fact is asked for.
  reference             nothing is evicted
  recalled, sparse      at its original position, as it was: ebb's default
  recalled, compact     survivors close up and are turned when it leaves; it comes back in its order among them
  compact, at the tail  the same, and it comes back behind them, as caches do that number tokens by their place
  sparse, at the tail   survivors stay; it comes back right before what comes next
  re-decoded            from its tokens, by a forward pass
  discarded             not at all
Where a span is away for a moment, sparse must be bitwise equal to the reference, and the table says whether it is. Away
while reading, what was read meanwhile did not see it, and that stays so however it comes back.)";

struct FidelityFlags {
  FidelityOptions options;
  std::string model;
  std::vector<std::string> kv_types = {"f16", "q8_0"};
  std::vector<std::string> absences = {"moment", "reading"};
  ReportFlags reports;
};

ExitCode bench_fidelity(const FidelityFlags& flags) {
  FidelityOptions options = flags.options;
  const Result<std::filesystem::path> model = given_or_bundled_model(flags.model);
  if (!model.ok()) return fail(model.status());
  options.model = *model;
  options.kv_types.clear();
  for (const std::string& type : flags.kv_types) {
    options.kv_types.push_back(find_row_type(type).value_or(RowType::kF16));  // CLI11 let only known names through
  }
  options.absences.clear();
  for (const std::string& name : flags.absences) {
    options.absences.push_back(name == absence_name(Absence::kMoment) ? Absence::kMoment : Absence::kReading);
  }
  const Result<FidelityReport> report = run_shown(run_fidelity, options);
  if (!report.ok()) return fail(report.status());
  std::cout << fidelity_text(*report) << std::flush;
  return write_reports(
      flags.reports, [&](const auto& path) { return write_fidelity_json(path, *report); },
      [&](const auto& path) { return write_fidelity_html(path, *report); });
}

void add_case_flags(CLI::App& command, FidelityFlags& flags) {
  FidelityOptions& options = flags.options;
  add_counts_flag(command, "--spans", options.spans, "Tokens that are evicted, each rounded up to whole blocks");
  add_counts_flag(command, "--distances", options.distances, "Tokens read between the span and the question");
  command.add_option("--kv-types", flags.kv_types, "Types of K and V")
      ->delimiter(',')
      ->check(CLI::IsMember({"f16", "bf16", "f32", "q8_0"}))
      ->type_name("TYPE,TYPE,...")
      ->capture_default_str();
  command
      .add_option("--absences", flags.absences,
                  "When spans are away: for a moment before the question, or while the distance is read")
      ->delimiter(',')
      ->check(CLI::IsMember({"moment", "reading"}))
      ->type_name("WHEN,WHEN")
      ->capture_default_str();
}

}  // namespace

void add_bench_fidelity(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<FidelityFlags>();
  CLI::App* command = bench.add_subcommand("fidelity", "What answers lose by each way of having a block back");
  command->footer(kFidelityFooter);
  add_bundled_model_flag(*command, flags->model);
  add_case_flags(*command, *flags);
  FidelityOptions& options = flags->options;
  add_count_flag(*command, "-t,--threads", options.n_threads, {0, 512},
                 "Threads that compute; 0: one per physical core. They change no bit");
  add_count_flag(*command, "--context", options.n_context, {1, 1 << 20}, "Tokens read before the span");
  add_count_flag(*command, "--facts", options.n_facts, {1, 1 << 16}, "Sessions of each case and arm, with a fact each");
  add_count_flag(*command, "--scored", options.n_scored, {1, 1 << 16},
                 "Tokens of each session whose logits are compared: the question, the reply, and more reading");
  add_count_flag(*command, "--block-size", options.block_size, {8, 128}, "Tokens of a block");
  add_report_flags(*command, flags->reports);
  command->callback([flags, &action] { action = [flags] { return bench_fidelity(*flags); }; });
}

}  // namespace ebb
