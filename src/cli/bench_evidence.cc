// `ebb bench evidence`.
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/evidence_cost.h"
#include "cli/bench.h"
#include "cli/engine_flags.h"
#include "cli/terminal.h"

namespace ebb {
namespace {

constexpr const char* kEvidenceFooter = R"(Examples:
  ebb bench evidence                              random model of 1B parameters in Q4_K; a quarter of an hour on 2 cores
  ebb bench evidence --depths 2048 --policies "snapkv:window=64;h2o"
  ebb bench evidence --depths 2048 --policies "rkv;kvzip;expected_attention"
  ebb bench evidence -m model.gguf --json evidence.json --html evidence.html

Every policy's session reads the same frames, so that only what is noted differs. Nothing is evicted. Without -m the
model is written once into the cache folder (0.6 GB) and kept there.)";

struct EvidenceFlags {
  EvidenceCostOptions options;
  MeasuredModelFlags model;
  std::string kv_type = "f16";
  ReportFlags reports;
};

ExitCode bench_evidence(const EvidenceFlags& flags) {
  EvidenceCostOptions options = flags.options;
  flags.model.set(options);
  options.kv_type = find_row_type(flags.kv_type).value_or(RowType::kF16);  // CLI11 let only known names through
  const Result<EvidenceCostReport> report = run_shown(run_evidence_cost, options);
  if (!report.ok()) return fail(report.status());
  std::cout << evidence_cost_text(*report) << std::flush;
  return write_reports(
      flags.reports, [&](const auto& path) { return write_evidence_cost_json(path, *report); },
      [&](const auto& path) { return write_evidence_cost_html(path, *report); });
}

void add_evidence_shape_flags(CLI::App& command, EvidenceFlags& flags) {
  EvidenceCostOptions& options = flags.options;
  add_counts_flag(command, "--depths", options.depths, "Resident tokens, each rounded up to whole blocks");
  add_count_flag(command, "-n,--n-gen", options.n_decode, {1, 1 << 16}, "Tokens that each session decodes");
  add_count_flag(command, "--prompts", options.n_prompts, {1, 1 << 16}, "Prompts that each session reads");
  add_count_flag(command, "-p,--n-prompt", options.n_prompt, {1, 1 << 16}, "Tokens of a prompt");
  add_count_flag(command, "--choices", options.n_choices, {1, 1 << 16}, "Choices that each policy is timed for");
  add_count_flag(command, "--block-size", options.block_size, {1, 128}, "Tokens of a block");
  add_kv_type_flag(command, flags.kv_type, "Type of K and V");
}

}  // namespace

void add_bench_evidence(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<EvidenceFlags>();
  CLI::App* command = bench.add_subcommand("evidence", "What it costs to note what policies look at");
  command->footer(kEvidenceFooter);
  add_measured_model_flags(*command, flags->model, flags->options.n_threads);
  add_quant_flag(*command, flags->options.quant);
  command->add_option("--policies", flags->options.policies, "Whose evidence is noted, with their parameters")
      ->delimiter(';')
      ->check(check_policy)
      ->type_name("POLICY;...")
      ->capture_default_str();
  add_evidence_shape_flags(*command, *flags);
  add_report_flags(*command, flags->reports);
  command->callback([flags, command, &action] {
    note_unused_quant(*command);
    action = [flags] { return bench_evidence(*flags); };
  });
}

}  // namespace ebb
