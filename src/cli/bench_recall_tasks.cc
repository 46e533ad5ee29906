// `ebb bench recall-tasks`
#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/recall_ceiling.h"
#include "cli/bench.h"
#include "cli/bundled_model.h"
#include "cli/engine_flags.h"
#include "cli/recall_task_flags.h"
#include "cli/terminal.h"

namespace ebb {
namespace {

constexpr const char* kRecallTasksFooter = R"(Examples:
  ebb bench recall-tasks                              the bundled model's ceiling; a quarter of an hour or so on 2 cores
  ebb bench recall-tasks --kinds needle --lengths 512 --haystacks text --text war-and-peace.txt
  ebb bench recall-tasks -m model.gguf --tasks 10 --json ceiling.json
  ebb bench recall-tasks --kv-sparse-prompt "none;tri_shape:recent=1024;xattention" --lengths 4096
  ebb bench recall-tasks --show --kinds multi_fact --tasks 2

Contexts tell facts, questions ask for them, in the words in which they were told and paraphrased, with and without a near
twin of each asked fact. Nothing is evicted: what is answered here is the most that any policy can keep, and with sparse
prompts what is lost by reading less; how long reading a context took is told beside it. The language is the one that the
bundled model was trained on, or plain English with -m. --show prints the tasks as JSON and asks nothing.)";

struct RecallTasksFlags {
  CeilingOptions options;
  std::string model;
  std::vector<std::string> kinds = {"needle", "multi_fact", "ten_at_once", "key_value"};
  std::vector<std::string> haystacks = {"sentences", "chatter"};
  RecallTaskFlags task = {.split = "tune"};
  std::string kv_type = "f16";
  std::string json;
  bool shows = false;
  bool paraphrased = false;
  bool near_twins = false;
};

// CLI11 let only known names through.
void take_names(const RecallTasksFlags& flags, CeilingOptions& options) {
  options.kinds.clear();
  for (const std::string& name : flags.kinds)
    options.kinds.push_back(find_recall_kind(name).value_or(RecallKind::kNeedle));
  options.haystacks = haystacks_of(flags.haystacks);
  options.kv_type = find_row_type(flags.kv_type).value_or(RowType::kF16);
}

ExitCode show_tasks(const CeilingOptions& options, const RecallTasksFlags& flags) {
  const Result<std::unique_ptr<Vocabulary>> vocabulary = Vocabulary::load(options.model);
  if (!vocabulary.ok()) return fail(vocabulary.status());
  std::vector<RecallTask> tasks;
  for (const RecallKind kind : options.kinds) {
    for (const Haystack haystack : options.haystacks) {
      for (const std::int32_t n_tokens : options.lengths) {
        RecallTaskOptions task = options.task;
        task.kind = kind;
        task.haystack = haystack;
        task.n_tokens = n_tokens;
        task.paraphrased = flags.paraphrased;
        task.near_twins = flags.near_twins;
        Result<std::vector<RecallTask>> made = make_recall_tasks(**vocabulary, task);
        if (!made.ok()) return fail(made.status());
        std::ranges::move(*made, std::back_inserter(tasks));
      }
    }
  }
  std::cout << recall_tasks_json(tasks) << std::flush;
  return ExitCode::kOk;
}

ExitCode bench_recall_tasks(RecallTasksFlags& flags) {
  CeilingOptions options = flags.options;
  const Result<std::filesystem::path> model = given_or_bundled_model(flags.model);
  if (!model.ok()) return fail(model.status());
  options.model = *model;
  take_names(flags, options);
  if (const Status status = take_recall_task_flags(flags.task, !flags.model.empty(), options.task); !status.ok()) {
    return fail(status);
  }
  if (flags.shows) return show_tasks(options, flags);
  const Result<CeilingReport> report = run_shown(run_ceiling, options);
  if (!report.ok()) return fail(report.status());
  std::cout << ceiling_text(*report) << std::flush;
  return write_reports(
      {.json = flags.json, .html = ""}, [&](const auto& path) { return write_ceiling_json(path, *report); },
      [](const std::string&) { return Status(); });
}

void add_task_flags(CLI::App& command, RecallTasksFlags& flags) {
  command.add_option("--kinds", flags.kinds, "Kinds of tasks: needle, multi_fact, ten_at_once, key_value")
      ->delimiter(',')
      ->check(CLI::IsMember({"needle", "multi_fact", "ten_at_once", "key_value"}))
      ->type_name("KIND,KIND,...")
      ->capture_default_str();
  add_haystack_flag(command, "--haystacks", flags.haystacks, false);
  add_recall_task_flags(command, flags.task, flags.options.task);
  add_counts_flag(command, "--lengths", flags.options.lengths, "Tokens of a context");
}

}  // namespace

void add_bench_recall_tasks(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<RecallTasksFlags>();
  CLI::App* command = bench.add_subcommand("recall-tasks", "Right answers to recall tasks while nothing is evicted");
  command->footer(kRecallTasksFooter);
  add_bundled_model_flag(*command, flags->model);
  add_count_flag(*command, "-t,--threads", flags->options.n_threads, {0, 512}, "Threads; 0: one per physical core");
  add_kv_type_flag(*command, flags->kv_type, "Type of K and V in frames");
  command
      ->add_option(
          "--kv-sparse-prompt", flags->options.sparse_prompts,
          "Ways of reading a context, as ebb run --kv-sparse-prompt has them; each context is read in each, in turn")
      ->delimiter(';')
      ->check(check_sparse_prompt)
      ->type_name("SCHEME;SCHEME;...")
      ->capture_default_str();
  add_task_flags(*command, *flags);
  CLI::Option* const show = command->add_flag("--show", flags->shows, "Print the tasks as JSON instead");
  command->add_flag("--paraphrased", flags->paraphrased, "With --show: questions in other words than the facts")
      ->needs(show);
  command->add_flag("--near-twins", flags->near_twins, "With --show: facts that differ in one word of the subject")
      ->needs(show);
  command->add_option("--json", flags->json, "Write the figures, and every wrong answer, to this file too")
      ->type_name("FILE");
  command->callback([flags, &action] { action = [flags] { return bench_recall_tasks(*flags); }; });
}

}  // namespace ebb
