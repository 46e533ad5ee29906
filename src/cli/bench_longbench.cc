// `ebb bench longbench`
#include "cli/bench.h"

#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/longbench.h"
#include "cli/bundled_model.h"
#include "cli/store_flag.h"
#include "cli/terminal.h"
#include "cli/text_file.h"

namespace ebb {
namespace {

constexpr const char* kLongBenchFooter = R"(Examples:
  ebb bench longbench                                 what the bundled model can do, every policy
  ebb bench longbench --policies "snapkv;adakv:window=32" --budgets 512,256 --context 2048 --html longbench.html
  ebb bench longbench -m model.gguf --data qasper.jsonl --prompts dataset2prompt.json --budgets 1024,512 --items 200

Rows are policies at as many frames each, columns are tasks, cells are scores of 0 to 100; the first row never evicts. In
brackets: by how many points a row is off it, 19 times of 20 (paired bootstrap over items). Policies see the question.
--data takes files of LongBench's shape, one JSON object a line with dataset, input, context, answers and all_classes, of the
data sets that are measured by the words of an answer (qa_f1), by what a summary has in common with another (rouge_l), or by a
class (classification). Prompts that are too long lose their middle.)";

struct LongBenchFlags {
  LongBenchOptions options;
  LongBenchFileOptions file = {.n_items = 200};
  std::string model;
  std::string kv_type = "f16";
  std::string data;
  std::string prompts;
  std::string too_long = "truncate";
  std::string store = "ram=1G";
  ReportFlags reports;
};

Status take_file(const LongBenchFlags& flags, LongBenchOptions& options) {
  if (flags.data.empty()) return {};
  LongBenchFileOptions file = flags.file;
  file.too_long = flags.too_long == "refuse" ? TooLong::kRefuse : TooLong::kTruncate;
  EBB_ASSIGN_OR_RETURN(file.lines, read_text(flags.data, kMostDataBytes));
  if (!flags.prompts.empty()) {
    EBB_ASSIGN_OR_RETURN(file.prompts, read_text(flags.prompts, kMostDataBytes));
  }
  options.file = std::move(file);
  return {};
}

ExitCode bench_longbench(const LongBenchFlags& flags) {
  LongBenchOptions options = flags.options;
  const Result<std::filesystem::path> model = given_or_bundled_model(flags.model);
  if (!model.ok()) return fail(model.status());
  options.model = *model;
  options.kv_type = find_row_type(flags.kv_type).value_or(RowType::kF16);  // CLI11 let only known names through
  options.task.language = flags.model.empty() ? RecallLanguage::kBundled : RecallLanguage::kEnglish;
  const Result<ColdStoreOptions> store = parse_store_flag(flags.store);
  if (!store.ok()) return fail(store.status());
  options.store = *store;
  if (const Status status = take_file(flags, options); !status.ok()) return fail(status);
  const Result<LongBenchReport> report = run_shown(run_longbench, options);
  if (!report.ok()) return fail(report.status());
  std::cout << longbench_text(*report) << std::flush;
  return write_reports(
      flags.reports, [&](const auto& path) { return write_longbench_json(path, *report); },
      [&](const auto& path) { return write_longbench_html(path, *report); });
}

// What is asked: tasks of ours, or a file.
void add_task_flags(CLI::App& command, LongBenchFlags& flags) {
  RecallTaskOptions& task = flags.options.task;
  CLI::Option* const data =
      command
          .add_option("--data", flags.data, "A file of LongBench's shape; default: tasks that the bundled model can do")
          ->type_name("FILE");
  const auto add_count = [&](const char* name, auto& value, CLI::Range range, const char* help) {
    return command.add_option(name, value, help)->check(range)->type_name("N")->capture_default_str();
  };
  add_count("--context", task.n_tokens, CLI::Range(128, 1 << 20), "Tokens of a context of ours")->excludes(data);
  add_count("--tasks", task.n_tasks, CLI::Range(1, 1 << 16), "Contexts of each task of ours")->excludes(data);
  add_count("--seed", task.seed, CLI::Range(0, 1 << 30), "Another seed makes other contexts")->excludes(data);
  command
      .add_option("--prompts", flags.prompts, "LongBench's dataset2prompt.json, for scores as published; default: ours")
      ->needs(data)
      ->type_name("FILE");
  add_count("--items", flags.file.n_items, CLI::Range(1, 1 << 20), "The first so many of each data set")->needs(data);
  add_count("--max-length", flags.file.max_tokens, CLI::Range(0, 1 << 24),
            "Tokens of a prompt; 0: what the model's context holds beside its reply")
      ->needs(data);
  command.add_option("--too-long", flags.too_long, "What becomes of longer ones: truncate, in the middle, or refuse")
      ->needs(data)
      ->check(CLI::IsMember({"truncate", "refuse"}))
      ->type_name("WAY")
      ->capture_default_str();
}

}  // namespace

void add_bench_longbench(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<LongBenchFlags>();
  CLI::App* command =
      bench.add_subcommand("longbench", "Scores of tasks by policy at equal frames, as LongBench's tables");
  command->footer(kLongBenchFooter);
  LongBenchOptions& options = flags->options;
  add_bundled_model_flag(*command, flags->model);
  command->add_option("--policies", options.policies, "Policies with their parameters; default: every one that evicts")
      ->delimiter(';')
      ->type_name("POLICY;POLICY;...");
  add_counts_flag(*command, "--budgets", options.budgets, "Tokens that stay hot");
  add_task_flags(*command, *flags);
  add_count_flag(*command, "-t,--threads", options.n_threads, {0, 512}, "Threads; 0: one per physical core");
  add_count_flag(*command, "--block-size", options.block_size, {1, 128}, "Tokens of a block: the grain of choosing");
  add_kv_type_flag(*command, flags->kv_type, "Type of K and V in frames");
  command->add_option("--kv-store", flags->store, "What a prompt's blocks come back from for each row: ram=SIZE")
      ->type_name("SPEC")
      ->capture_default_str();
  add_report_flags(*command, flags->reports);
  command->callback([flags, &action] { action = [flags] { return bench_longbench(*flags); }; });
}

}  // namespace ebb
