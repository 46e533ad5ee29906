// `ebb bench splice`.
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/splice.h"
#include "cli/bench.h"
#include "cli/terminal.h"

namespace ebb {
namespace {

constexpr const char* kSpliceFooter = R"(Examples:
  ebb bench splice                       random model of 1B parameters in Q4_K; a few minutes on 2 cores
  ebb bench splice --spans 64,1280 --kv-types f16 --html splice.html
  ebb bench splice -m model.gguf --context 128 --spans 64,256

For each span it evicts, saves and recalls its blocks through a session, as a turn does, and computes them again by a
forward pass at the same place. Recalls verify every byte; the first one is held against what was evicted. Then tokens
are decoded with and without saving behind (the decode stall). Without -m the model is written once into the cache
folder (0.6 GB) and kept there. The disk tier's files are removed at the end.)";

struct SpliceFlags {
  SpliceOptions options;
  MeasuredModelFlags model;
  std::string disk_folder;
  std::vector<std::string> kv_types = {"f16", "q8_0"};
  ReportFlags reports;
};

ExitCode bench_splice(const SpliceFlags& flags) {
  SpliceOptions options = flags.options;
  flags.model.set(options);
  options.disk_folder = flags.disk_folder;
  options.kv_types.clear();
  for (const std::string& type : flags.kv_types) {
    options.kv_types.push_back(find_row_type(type).value_or(RowType::kF16));  // CLI11 let only known names through
  }
  const Result<SpliceReport> report = run_shown(run_splice, options);
  if (!report.ok()) return fail(report.status());
  std::cout << splice_text(*report) << std::flush;
  return write_reports(
      flags.reports, [&](const auto& path) { return write_splice_json(path, *report); },
      [&](const auto& path) { return write_splice_html(path, *report); });
}

void add_count_flags(CLI::App& command, SpliceOptions& options) {
  add_counts_flag(command, "--spans", options.spans, "Tokens to save and recall, each rounded up to whole blocks");
  add_count_flag(command, "--context", options.n_context, {1, 1 << 20}, "Hot tokens before the span");
  add_count_flag(command, "--block-size", options.block_size, {8, 128}, "Tokens of a block");
  add_count_flag(command, "--repeat", options.n_rounds, {1, 1000},
                 "Rounds of saving and recalling; the table shows their median");
  add_count_flag(command, "--prefills", options.n_prefills, {1, 1000}, "Forward passes over each span");
  add_count_flag(command, "-n,--n-gen", options.n_decode, {0, 1 << 16},
                 "Tokens that a round of the decode stall decodes; 0: none");
  command
      .add_option("--decode-rounds", options.n_decode_rounds,
                  "Rounds of the decode stall, each once with saving and once without")
      ->check(CLI::Range(1, 1000))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace

void add_bench_splice(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<SpliceFlags>();
  CLI::App* command =
      bench.add_subcommand("splice", "What it costs to save a span, to recall it and to compute it again");
  command->footer(kSpliceFooter);
  add_measured_model_flags(*command, flags->model, flags->options.n_threads);
  add_quant_flag(*command, flags->options.quant);
  command->add_option("--kv-types", flags->kv_types, "Types of K and V")
      ->delimiter(',')
      ->check(CLI::IsMember({"f16", "bf16", "f32", "q8_0", "kivi4"}))
      ->type_name("TYPE,TYPE,...")
      ->capture_default_str();
  add_count_flags(*command, flags->options);
  command
      ->add_option("--disk-dir", flags->disk_folder, "Where the disk tier's files lie meanwhile; default: --cache-dir")
      ->type_name("FOLDER");
  add_report_flags(*command, flags->reports);
  command->callback([flags, command, &action] {
    note_unused_quant(*command);
    action = [flags] { return bench_splice(*flags); };
  });
}

}  // namespace ebb
