// `ebb bench edits`
#include <algorithm>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/edits.h"
#include "cli/bench.h"
#include "cli/bundled_model.h"
#include "cli/recall_task_flags.h"

namespace ebb {
namespace {

constexpr const char* kBenchEditsFooter = R"(Examples:
  ebb bench edits                                       some twenty minutes on 2 cores
  ebb bench edits --kinds clock,summary --recompute 0,8 --html edits.html
  ebb bench edits -m model.gguf --language english

A history is read, a client changes something early in it, and asks: for what the edit changed, for what a later message
concluded from that, and for a fact that the edit left alone. Kinds: changed (a file is said anew), cleared (a tool's result
gives way to a line), thinking (dropped), reminder (moved to the last message), clock (a time and a value in the system
text), summary (three messages give way to one). Each way of --kv-reuse is an arm:
exact, fresh, and approximate for each N of --recompute.)";

struct EditsFlags {
  EditsOptions options;
  std::string model;
  std::vector<std::string> kinds;
  std::string split;
  std::string language;
  ReportFlags reports;
};

Result<std::vector<EditKind>> read_kinds(const std::vector<std::string>& names) {
  std::vector<EditKind> kinds;
  for (const std::string& name : names) {
    const auto* const kind = std::ranges::find(kEditKinds, name, [](EditKind of) { return name_of(of); });
    if (kind == kEditKinds.end())
      return error(Code::kInvalidArgument, "'{}' is no kind of edit: --help names them", name);
    kinds.push_back(*kind);
  }
  return kinds;
}

ExitCode bench_edits(const EditsFlags& flags) {
  EditsOptions options = flags.options;
  const Result<std::filesystem::path> model = given_or_bundled_model(flags.model);
  if (!model.ok()) return fail(model.status());
  options.model = *model;
  if (!flags.kinds.empty()) {
    const Result<std::vector<EditKind>> kinds = read_kinds(flags.kinds);
    if (!kinds.ok()) return fail(kinds.status());
    options.kinds = *kinds;
  }
  options.split = find_recall_split(flags.split).value_or(RecallSplit::kTest);
  options.language = language_of(flags.language, !flags.model.empty());
  const Result<EditsReport> report = run_shown(run_edits, options);
  if (!report.ok()) return fail(report.status());
  std::cout << edits_text(*report) << std::flush;
  return write_reports(
      flags.reports, [&](const auto& path) { return write_edits_json(path, *report); },
      [&](const auto& path) { return write_edits_html(path, *report); });
}

}  // namespace

void add_bench_edits(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<EditsFlags>();
  EditsOptions& options = flags->options;
  flags->split = std::string(name_of(options.split));
  CLI::App* command =
      bench.add_subcommand("edits", "What reuse behind an edited history costs in answers and spares in tokens");
  command->footer(kBenchEditsFooter);
  add_bundled_model_flag(*command, flags->model);
  add_count_flag(*command, "-t,--threads", options.n_threads, {0, 512},
                 "Threads that compute; 0: one per physical core");
  command->add_option("--kinds", flags->kinds, "Kinds of edits, as below; default: all")
      ->delimiter(',')
      ->type_name("NAME,NAME,...");
  add_counts_flag(*command, "--lengths", options.lengths, "Tokens of a history, about");
  add_count_flag(*command, "--cases", options.n_cases, {1, 10'000}, "Edits of each kind and length");
  add_counts_flag(*command, "--recompute", options.recomputed,
                  "First tokens of each block that approximate reuse computes, an arm for each");
  add_count_flag(*command, "--kv-budget", options.budget_tokens, {512, 1 << 24}, "Tokens that may be hot");
  add_count_flag(*command, "--block-size", options.block_size, {8, 128}, "Tokens of a block");
  add_policy_flag(*command, options.policy);
  add_split_flag(*command, flags->split);
  add_language_flag(*command, flags->language);
  command->add_option("--seed", options.seed, "Another seed makes other edits")->type_name("N")->capture_default_str();
  add_report_flags(*command, flags->reports);
  command->callback([flags, &action] { action = [flags] { return bench_edits(*flags); }; });
}

}  // namespace ebb
