// `ebb bench speed`.
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/speed.h"
#include "bench/speed_model.h"
#include "cli/bench.h"
#include "cli/terminal.h"

namespace ebb {
namespace {

constexpr const char* kSpeedFooter = R"(Examples:
  ebb bench speed                   random models of 1B parameters in Q4_K and Q8_0; half an hour or so on 2 cores
  ebb bench speed --quant q4_k --depths 0,2048
  ebb bench speed -m model.gguf --json speed.json
  ebb bench speed --shape 0.3b,1b,3b --quant q4_k_m,q5_k_m
  ebb bench speed --quant q4_0 --busy 1
  ebb bench speed --quant q4_0 --peer-bench ik=ik_llama.cpp/build/bin/llama-bench

Both sides run in this process on the same file, in turn, round by round, so that what disturbs one disturbs both.
Programs of --peer-bench run in the same rounds, each time as a process of their own, and what counts is the speed that they say.
Without -m the model is written once into the cache folder (0.6 GB for q4_k, 1.1 GB for q8_0) and kept there.)";

struct SpeedFlags {
  SpeedOptions options;
  MeasuredModelFlags model;
  std::string kv_type = "f16";
  ReportFlags reports;
};

ExitCode bench_speed(const SpeedFlags& flags) {
  SpeedOptions options = flags.options;
  flags.model.set(options);
  options.kv_type = find_row_type(flags.kv_type).value_or(RowType::kF16);  // CLI11 let only known names through
  const Result<SpeedReport> report = run_shown(run_speed, options);
  if (!report.ok()) return fail(report.status());
  std::cout << speed_text(*report) << std::flush;
  return write_reports(
      flags.reports, [&](const auto& path) { return write_speed_json(path, *report); },
      [&](const auto& path) { return write_speed_html(path, *report); });
}

void add_speed_shape_flags(CLI::App& command, SpeedFlags& flags) {
  SpeedOptions& options = flags.options;
  add_counts_flag(command, "--depths", options.depths, "Resident tokens before what is measured");
  add_count_flag(command, "--repeat", options.n_rounds, {1, 1000},
                 "Rounds of each measurement; the table shows their median");
  add_count_flag(command, "-p,--n-prompt", options.n_prompt, {1, 1 << 16}, "Tokens of a prompt, computed in one step");
  add_count_flag(command, "-n,--n-gen", options.n_decode, {1, 1 << 16}, "Tokens that a round decodes");
  add_count_flag(
      command, "--busy", options.n_busy, {0, 512},
      "Cores that other programs want all the time during the rounds: how decoding fares on a machine in use");
  add_kv_type_flag(command, flags.kv_type, "Type of K and V on both sides");
}

}  // namespace

void add_bench_speed(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<SpeedFlags>();
  CLI::App* command = bench.add_subcommand("speed", "Prompt and decode speed of ebb and libllama on the same model");
  command->footer(kSpeedFooter);
  add_measured_model_flags(*command, flags->model, flags->options.n_threads);
  command->add_option("--quant", flags->options.quants, "Quantisations of the random models: " + speed_quant_names())
      ->delimiter(',')
      ->type_name("TYPE,TYPE,...")
      ->capture_default_str();
  command
      ->add_option(
          "--shape", flags->options.shapes,
          "Shapes of the random models, by their parameters: " + speed_shape_names() + " (Llama 3.2's 1B and 3B)")
      ->delimiter(',')
      ->type_name("SHAPE,SHAPE,...")
      ->capture_default_str();
  command
      ->add_option(
          "--peer-bench", flags->options.peer_benches,
          "A llama-bench (llama.cpp's, ik_llama.cpp's) that joins the rounds on the same file; may be repeated")
      ->allow_extra_args(false)
      ->type_name("[NAME=]PROGRAM");
  add_speed_shape_flags(*command, *flags);
  add_report_flags(*command, flags->reports);
  command->callback([flags, command, &action] {
    note_unused_quant(*command);
    action = [flags] { return bench_speed(*flags); };
  });
}

}  // namespace ebb
