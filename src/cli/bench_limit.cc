// `ebb bench limit`
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/limit.h"
#include "cli/bench.h"
#include "cli/bundled_model.h"
#include "cli/engine_flags.h"
#include "cli/terminal.h"
#include "cli/text_file.h"

namespace ebb {
namespace {

constexpr const char* kLimitFooter = R"(Examples:
  ebb bench limit --mode gen_length                   a text as long as it gets: eviction off, then on
  ebb bench limit --mode gen_throughput               prompts that fit at once
  ebb bench limit --mode gen_length --kv-eviction "snapkv;h2o" --timeout 30 --html limit.html
  ebb bench limit --mode gen_throughput -m model.gguf --data prompts.jsonl --kv-budget 32768 --report limit.csv

gen_length asks for a text, each time one twice as long, until one takes longer than --timeout ("Maximum generation time
reached") or the KV budget is full ("Cache size exhausted"). gen_throughput computes 1, 2, 4, ... prompts at once until the
budget is full, then halves between. none is eviction off. Ends of replies are ignored, no chat template is used.)";

struct LimitFlags {
  LimitOptions options;
  std::string mode;
  std::string model;
  std::string kv_type = "f16";
  std::string data;
  std::string csv;
  ReportFlags reports;
};

Status take_prompts(const std::string& path, std::vector<std::string>& prompts) {
  EBB_ASSIGN_OR_RETURN(const std::string lines, read_text(path, kMostDataBytes));
  Result<std::vector<std::string>> read = read_limit_prompts(lines);
  if (!read.ok()) return error(read.status().code(), "{}: {}", path, read.status().message());
  prompts = *std::move(read);
  return {};
}

ExitCode bench_limit(const LimitFlags& flags) {
  LimitOptions options = flags.options;
  const Result<std::filesystem::path> model = given_or_bundled_model(flags.model);
  if (!model.ok()) return fail(model.status());
  options.model = *model;
  // CLI11 let only known names through.
  options.mode = find_limit_mode(flags.mode).value_or(LimitMode::kGenLength);
  options.kv_type = find_row_type(flags.kv_type).value_or(RowType::kF16);
  options.language = flags.model.empty() ? RecallLanguage::kBundled : RecallLanguage::kEnglish;
  if (!flags.data.empty()) {
    if (const Status status = take_prompts(flags.data, options.prompts); !status.ok()) return fail(status);
  }
  const Result<LimitReport> report = run_shown(run_limit, options);
  if (!report.ok()) return fail(report.status());
  std::cout << limit_text(*report) << std::flush;
  if (!flags.csv.empty()) {
    if (const Status status = write_limit_csv(flags.csv, *report); !status.ok()) return fail(status);
  }
  return write_reports(
      flags.reports, [&](const auto& path) { return write_limit_json(path, *report); },
      [&](const auto& path) { return write_limit_html(path, *report); });
}

}  // namespace

void add_bench_limit(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<LimitFlags>();
  CLI::App* command = bench.add_subcommand("limit", "How long a text, or how many prompts, a KV budget carries");
  command->footer(kLimitFooter);
  LimitOptions& options = flags->options;
  command->add_option("--mode", flags->mode, "gen_length or gen_throughput")
      ->required()
      ->check(CLI::IsMember({"gen_length", "gen_throughput"}))
      ->type_name("MODE");
  add_bundled_model_flag(*command, flags->model);
  command
      ->add_option("--kv-eviction", options.policies,
                   "Policies with their parameters, one after the other; none: eviction off")
      ->delimiter(';')
      ->check(check_policy)
      ->type_name("POLICY;POLICY;...")
      ->default_str("none;streaming");
  add_count_flag(*command, "--kv-budget", options.pool_tokens, {1, 1 << 30},
                 "Tokens that may be hot, of all prompts together");
  add_count_flag(*command, "--cache-size", options.session_tokens, {1, 1 << 30},
                 "Tokens that one prompt and its text keep hot where something evicts");
  command->add_option("--timeout", options.timeout_s, "Seconds that one round may take")
      ->check(CLI::Range(0.1, 86400.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  add_count_flag(*command, "-n,--max-tokens", options.max_tokens, {1, 1 << 24},
                 "Tokens generated for each prompt of gen_throughput");
  CLI::Option* const length =
      command->add_option("--prompt-tokens", options.prompt_tokens, "Tokens of a prompt of ours")
          ->check(CLI::Range(32, 1 << 20))
          ->type_name("N")
          ->capture_default_str();
  command
      ->add_option("--data", flags->data, "JSON lines, each with a text \"prompt\"; default: contexts of recall tasks")
      ->excludes(length)
      ->type_name("FILE");
  add_count_flag(*command, "-t,--threads", options.n_threads, {0, 512}, "Threads; 0: one per physical core");
  add_count_flag(*command, "--block-size", options.block_size, {1, 128}, "Tokens of a block");
  add_kv_type_flag(*command, flags->kv_type, "Type of K and V in frames");
  command->add_option("--report", flags->csv, "Write a row for each round to this file too, as CSV")->type_name("FILE");
  add_report_flags(*command, flags->reports);
  command->callback([flags, &action] { action = [flags] { return bench_limit(*flags); }; });
}

}  // namespace ebb
