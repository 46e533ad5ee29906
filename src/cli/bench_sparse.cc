// `ebb bench sparse`.
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/sparse.h"
#include "cli/bench.h"
#include "cli/bundled_model.h"
#include "cli/terminal.h"

namespace ebb {
namespace {

constexpr const char* kSparseFooter = R"(Examples:
  ebb bench sparse                       random model of 1B parameters in Q4_K; ten minutes or so on 2 cores
  ebb bench sparse --depths 2048 --budgets 128,1024 --html sparse.html
  ebb bench sparse --text war-and-peace.txt

Decodes behind a long history three ways: nothing is evicted; survivors of an eviction stay where they are (sparse);
survivors close up and are turned (compact). The arms take turns, round by round. Perplexity and generated text are
those of another model, which can read: the bundled one, or --text-model. Without -m the model is written once into the
cache folder (0.6 GB) and kept there.)";

struct SparseFlags {
  SparseOptions options;
  MeasuredModelFlags model;
  std::string text_model;
  std::string text_file;
  bool without_text = false;
  std::string kv_type = "f16";
  ReportFlags reports;
};

ExitCode bench_sparse(const SparseFlags& flags) {
  SparseOptions options = flags.options;
  flags.model.set(options);
  options.text_file = flags.text_file;
  options.kv_type = find_row_type(flags.kv_type).value_or(RowType::kF16);  // CLI11 let only known names through
  if (!flags.without_text) {
    const auto model = given_or_bundled_model(flags.text_model);
    if (!model.ok()) {
      return fail(error(model.status().code(), "{} (as --text-model), or leave text out with --no-text",
                        model.status().message()));
    }
    options.text_model = *model;
  }
  const Result<SparseReport> report = run_shown(run_sparse, options);
  if (!report.ok()) return fail(report.status());
  std::cout << sparse_text(*report) << std::flush;
  return write_reports(
      flags.reports, [&](const auto& path) { return write_sparse_json(path, *report); },
      [&](const auto& path) { return write_sparse_html(path, *report); });
}

void add_text_flags(CLI::App& command, SparseFlags& flags) {
  SparseOptions& options = flags.options;
  CLI::Option* const without =
      command.add_flag("--no-text", flags.without_text, "Speed alone: no perplexity and no generated text");
  command.add_option("--text-model", flags.text_model, "GGUF file that reads the text; default: the bundled one")
      ->excludes(without)
      ->type_name("FILE");
  command.add_option("--text", flags.text_file, "What it reads; default: simple sentences")
      ->excludes(without)
      ->type_name("FILE");
  add_count_flag(command, "--text-context", options.n_text_context, {1, 1 << 20},
                 "Tokens of it that are read before the scored ones");
  add_count_flag(command, "--text-scored", options.n_text_scored, {1, 1 << 20},
                 "Tokens of it whose perplexity is taken");
  add_count_flag(command, "--text-generated", options.n_text_generated, {1, 1 << 20}, "Tokens to generate behind it");
}

void add_shape_flags(CLI::App& command, SparseFlags& flags) {
  SparseOptions& options = flags.options;
  add_counts_flag(command, "--depths", options.depths, "Tokens of the session before those that are decoded");
  add_counts_flag(command, "--budgets", options.budgets, "Tokens that may be hot in arms that evict");
  add_count_flag(command, "--block-size", options.block_size, {8, 128}, "Tokens of a block; a budget must hold four");
  add_count_flag(command, "--repeat", options.n_rounds, {1, 1000}, "Rounds of each arm; the table shows their median");
  add_count_flag(command, "-n,--n-gen", options.n_decode, {1, 1 << 16}, "Tokens that a round decodes");
  add_kv_type_flag(command, flags.kv_type, "Type of K and V");
}

}  // namespace

void add_bench_sparse(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<SparseFlags>();
  CLI::App* command = bench.add_subcommand("sparse", "Decode speed and text under a small budget, by how blocks leave");
  command->footer(kSparseFooter);
  add_measured_model_flags(*command, flags->model, flags->options.n_threads);
  add_quant_flag(*command, flags->options.quant);
  add_shape_flags(*command, *flags);
  add_text_flags(*command, *flags);
  add_report_flags(*command, flags->reports);
  command->callback([flags, command, &action] {
    note_unused_quant(*command);
    action = [flags] { return bench_sparse(*flags); };
  });
}

}  // namespace ebb
