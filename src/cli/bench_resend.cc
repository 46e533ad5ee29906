// `ebb bench gapfill` and `ebb bench baseline`: clients that say their whole history each time.
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/baseline.h"
#include "bench/gapfill.h"
#include "cli/bench.h"
#include "cli/bundled_model.h"
#include "cli/terminal.h"
#include "device/backend.h"

namespace ebb {
namespace {

constexpr const char* kGapfillFooter = R"(Examples:
  ebb bench gapfill                               the bundled model, within its trained context and past it
  ebb bench gapfill -m model.gguf --chunks 26 --budgets 6000
  ebb bench gapfill --html gapfill.html

A client sends chunks of text, with its whole history each time; each chunk states a fact, and early ones are asked for late.
Arms: none evicts nothing; everything fills all holes before each turn and evicts behind it; aware fills those nearest to the
end that fit the budget; ours recalls what the new message asks for.)";

constexpr const char* kBaselineFooter = R"(Examples:
  ebb bench baseline                              the bundled model; conversations of 14, 28 and 56 turns
  ebb bench baseline -m model.gguf --turns 56 --kv-budget 4096

A fact is planted in the first message and asked for in the last. Arms: none evicts nothing; truncate leaves out the oldest
messages that do not fit the budget; ours evicts and recalls under it.)";

template <class Options>
struct ResendFlags {
  Options options;
  std::string model;
  std::string kv_type = "f16";
  ReportFlags reports;
};

template <class Options>
ExitCode bench_resend(const ResendFlags<Options>& flags, Result<ResendReport> (*run)(const Options&)) {
  Options options = flags.options;
  const Result<std::filesystem::path> model = given_or_bundled_model(flags.model);
  if (!model.ok()) return fail(model.status());
  options.setup.model = *model;
  options.setup.kv_type = find_row_type(flags.kv_type).value_or(RowType::kF16);  // CLI11 let only known names through
  ProgressBar bar(0.0);
  options.setup.progress = [&bar](std::string_view what, double share) { bar.update(what, share); };
  bar.update("trying ways to read memory", 0.0);
  Result<PeakProbe> probe = PeakProbe::open(options.setup.n_threads > 0 ? options.setup.n_threads : default_threads());
  if (!probe.ok()) return fail(probe.status());
  // No figure is held against it: before and after say how far the machine drifted.
  probe->choose(PeakSizes().least);
  probe->measure();
  Result<ResendReport> report = run(options);
  probe->measure();
  bar.clear();
  if (!report.ok()) return fail(report.status());
  report->peak = probe->peak();
  std::cout << resend_text(*report) << std::flush;
  return write_reports(
      flags.reports, [&](const auto& path) { return write_resend_json(path, *report); },
      [&](const auto& path) { return write_resend_html(path, *report); });
}

template <class Options>
void add_setup_flags(CLI::App& command, ResendFlags<Options>& flags) {
  ResendSetup& setup = flags.options.setup;
  add_bundled_model_flag(command, flags.model);
  add_count_flag(command, "-t,--threads", setup.n_threads, {0, 512}, "Threads; 0: one per physical core");
  add_count_flag(command, "--block-size", setup.block_size, {8, 128}, "Tokens of a block");
  add_policy_flag(command, setup.policy);
  const auto add_mark = [&](const char* name, double& value, const char* help) {
    command.add_option(name, value, help)->check(CLI::Range(0.01, 1.0))->type_name("SHARE")->capture_default_str();
  };
  add_mark("--kv-high-watermark", setup.watermarks.high, "Evict when this share of the budget is hot");
  add_mark("--kv-low-watermark", setup.watermarks.low, "... until this share is");
  add_kv_type_flag(command, flags.kv_type, "Type of K and V in frames");
  command.add_option("--seed", setup.seed, "Another seed makes other texts and facts")
      ->type_name("N")
      ->capture_default_str();
  add_report_flags(command, flags.reports);
}

}  // namespace

void add_bench_gapfill(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<ResendFlags<GapfillOptions>>();
  GapfillOptions& options = flags->options;
  CLI::App* command = bench.add_subcommand("gapfill", "Early facts asked for late, by which holes are filled");
  command->footer(kGapfillFooter);
  add_setup_flags(*command, *flags);
  add_counts_flag(*command, "--chunks", options.chunks, "Chunks of a conversation");
  add_counts_flag(*command, "--budgets", options.budgets, "Tokens that may be hot");
  add_count_flag(*command, "--sessions", options.n_sessions, {1, 1000}, "Conversations of each case");
  add_count_flag(*command, "--characters", options.chunk_characters, {100, 1 << 20}, "Characters of a chunk");
  command->callback([flags, &action] { action = [flags] { return bench_resend(*flags, run_gapfill); }; });
}

void add_bench_baseline(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<ResendFlags<BaselineOptions>>();
  BaselineOptions& options = flags->options;
  CLI::App* command = bench.add_subcommand("baseline", "A budget beside leaving out the oldest messages");
  command->footer(kBaselineFooter);
  add_setup_flags(*command, *flags);
  add_counts_flag(*command, "--turns", options.turns, "Turns of a conversation");
  add_count_flag(*command, "--kv-budget", options.budget_tokens, {1, 1 << 24}, "Tokens that may be hot");
  add_count_flag(*command, "--sessions", options.n_sessions, {1, 1000}, "Conversations of each case");
  add_count_flag(*command, "--message", options.message_tokens, {1, 1 << 16}, "Tokens of a message");
  command->callback([flags, &action] { action = [flags] { return bench_resend(*flags, run_baseline); }; });
}

}  // namespace ebb
