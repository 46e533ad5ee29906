// `ebb bench`: one subcommand per benchmark.
#include "cli/bench.h"

#include <iostream>

#include <CLI/CLI.hpp>

#include "cli/engine_flags.h"

namespace ebb {
namespace {

constexpr const char* kBenchFooter = R"(Examples:
  ebb bench speed
  ebb bench splice --html splice.html
  ebb bench sparse --help)";

}  // namespace

void add_count_flag(CLI::App& command, const char* name, std::int32_t& value, CountRange range, const char* help) {
  command.add_option(name, value, help)
      ->check(CLI::Range(range.least, range.most))
      ->type_name("N")
      ->capture_default_str();
}

void add_counts_flag(CLI::App& command, const char* name, std::vector<std::int32_t>& values, const char* help) {
  command.add_option(name, values, help)->delimiter(',')->type_name("N,N,...")->capture_default_str();
}

void add_kv_type_flag(CLI::App& command, std::string& value, const char* help) {
  command.add_option("--kv-type", value, help)
      ->check(CLI::IsMember({"f16", "bf16", "f32", "q8_0", "kivi4"}))
      ->type_name("TYPE")
      ->capture_default_str();
}

void add_policy_flag(CLI::App& command, std::string& value) {
  command.add_option("--kv-eviction", value, "What leaves when room is needed (ebb policy list)")
      ->check(check_policy)
      ->type_name("POLICY")
      ->capture_default_str();
}

void add_bundled_model_flag(CLI::App& command, std::string& model) {
  command.add_option("-m,--model", model, "GGUF file; default: the small model that comes with ebb")->type_name("FILE");
}

void add_measured_model_flags(CLI::App& command, MeasuredModelFlags& flags, std::int32_t& n_threads) {
  command.add_option("-m,--model", flags.model, "GGUF file to measure; default: a random model of 1B parameters")
      ->type_name("FILE");
  add_count_flag(command, "-t,--threads", n_threads, {0, 512}, "Threads that compute; 0: one per physical core");
  command.add_option("--cache-dir", flags.cache_folder, "Where random models are kept")
      ->type_name("FOLDER")
      ->capture_default_str();
}

void add_quant_flag(CLI::App& command, std::string& quant) {
  command.add_option("--quant", quant, "Quantisation of the random model: " + speed_quant_names())
      ->type_name("TYPE")
      ->capture_default_str();
}

void note_unused_quant(const CLI::App& command) {
  if (command.count("--model") == 0) return;
  for (const char* flag : {"--quant", "--shape"}) {
    const CLI::Option* const option = command.get_option_no_throw(flag);
    if (option == nullptr || option->count() == 0) continue;
    std::cerr << "ebb: " << flag << " is of the random model that is measured without -m: it has no effect here\n";
  }
}

void add_report_flags(CLI::App& command, ReportFlags& flags) {
  command.add_option("--json", flags.json, "Write the figures to this file too")->type_name("FILE");
  command
      .add_option("--html", flags.html, "Write a page with plots to this file too; it needs nothing else to be read")
      ->type_name("FILE");
}

void add_bench(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("bench", "Measure ebb on this machine");
  command->footer(kBenchFooter);
  command->require_subcommand(1);
  add_bench_speed(*command, action);
  add_bench_splice(*command, action);
  add_bench_sparse(*command, action);
  add_bench_fidelity(*command, action);
  add_bench_wall(*command, action);
  add_bench_concurrency(*command, action);
  add_bench_gapfill(*command, action);
  add_bench_baseline(*command, action);
  add_bench_agent(*command, action);
  add_bench_edits(*command, action);
  add_bench_policies(*command, action);
  add_bench_recall_tasks(*command, action);
  add_bench_document(*command, action);
  add_bench_evidence(*command, action);
  add_bench_longbench(*command, action);
  add_bench_limit(*command, action);
  for (CLI::App* bench : command->get_subcommands({})) bench->group("Benchmarks");
}

}  // namespace ebb
