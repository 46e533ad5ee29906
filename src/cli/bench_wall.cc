// `ebb bench wall`
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/wall.h"
#include "cli/bench.h"
#include "cli/bundled_model.h"
#include "cli/terminal.h"

namespace ebb {
namespace {

constexpr const char* kBenchWallFooter = R"(Examples:
  ebb bench wall                                  the bundled model: a session eight times as long as its context
  ebb bench wall -m model.gguf --kv-budget 8192 --session 66000
  ebb bench wall --html wall.html                 hot tokens over the session, and every answer, as a page

Sections of reading matter are read one after the other; each states the id of one service. When all are read, some of the
ids are asked for, from the first section on. Arms: ebb evicts to RAM and recalls before each question; no recall loses
what it evicts; no eviction ends where the trained context is full; ceiling asks right behind each fact's own section.)";

struct WallFlags {
  WallOptions options;
  std::string model;
  std::string kv_type = "f16";
  ReportFlags reports;
  bool answers = false;
};

ExitCode bench_wall(const WallFlags& flags) {
  WallOptions options = flags.options;
  const Result<std::filesystem::path> model = given_or_bundled_model(flags.model);
  if (!model.ok()) return fail(model.status());
  options.model = *model;
  options.kv_type = find_row_type(flags.kv_type).value_or(RowType::kF16);  // CLI11 let only known names through
  const Result<WallReport> report = run_shown(run_wall, options);
  if (!report.ok()) return fail(report.status());
  std::cout << wall_text(*report);
  if (flags.answers) std::cout << wall_answers_text(*report);
  std::cout << std::flush;
  return write_reports(
      flags.reports, [&](const auto& path) { return write_wall_json(path, *report); },
      [&](const auto& path) { return write_wall_html(path, *report); });
}

}  // namespace

void add_bench_wall(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<WallFlags>();
  CLI::App* command = bench.add_subcommand("wall", "A session far beyond its KV budget and the model's context");
  command->footer(kBenchWallFooter);
  add_bundled_model_flag(*command, flags->model);
  const auto add_number = [&](const char* name, std::int32_t& value, const char* help) {
    command->add_option(name, value, help)->check(CLI::Range(0, 1 << 30))->type_name("N")->capture_default_str();
  };
  WallOptions& options = flags->options;
  add_number("-t,--threads", options.n_threads, "Threads; 0: one per physical core");
  add_number("--kv-budget", options.budget_tokens,
             "Tokens that may be hot; 0: just under a quarter of the trained context");
  add_number("--session", options.session_tokens, "Tokens of all sections; 0: eight times the trained context");
  add_number("--sections", options.n_sections, "Sections, each with one fact");
  add_number("--questions", options.n_questions, "Facts that are asked for at the end");
  add_number("--recall", options.n_recalled_blocks, "Blocks to recall for each question");
  add_count_flag(*command, "--block-size", options.block_size, {8, 128}, "Tokens of a block");
  add_policy_flag(*command, options.policy);
  add_kv_type_flag(*command, flags->kv_type, "Type of K and V in frames");
  command->add_option("--seed", options.seed, "Another seed makes other sections and facts")
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--answers", flags->answers, "Print every question and what each arm said");
  add_report_flags(*command, flags->reports);
  command->callback([flags, &action] { action = [flags] { return bench_wall(*flags); }; });
}

}  // namespace ebb
