// `ebb bench policies`.
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/policies.h"
#include "cli/bench.h"
#include "cli/bundled_model.h"
#include "cli/terminal.h"

namespace ebb {
namespace {

constexpr const char* kPoliciesFooter = R"(Examples:
  ebb bench policies                                  every policy, the bundled model
  ebb bench policies --policies "snapkv;h2o:recent=0.25" --parts 8 --html policies.html
  ebb bench policies -m model.gguf --language english --context 2048 --tasks 4

Contexts tell facts; each is computed once. Every arm begins from it, shrinks to a part of it by its policy, and answers a
question on top: so all have the same evidence and the same frames.
  agnostic      the policy has not seen the question when it chooses
  aware         it has
  with recall   blocks that share rare words with the question come back first, inside the budget
  oracle        ranks each head's blocks by what the right answer looks at, which nobody knows
+ and - mark what is better or worse than streaming 19 times of 20 (paired bootstrap, where 10 questions or more were asked).
Contexts are noted once for all arms, with windows of 32 queries, totals of every query, and by tokens: policies with other
windows are refused (areas: window=0), and so are slices of more than a token.)";

struct PoliciesFlags {
  PoliciesOptions options;
  std::string model;
  std::string kv_type = "f16";
  std::vector<std::string> kinds = {"needle", "multi_fact", "ten_at_once"};
  std::string haystack = "sentences";
  std::string language = "bundled";
  std::string split = "test";
  ReportFlags reports;
};

ExitCode bench_policies(const PoliciesFlags& flags) {
  PoliciesOptions options = flags.options;
  const Result<std::filesystem::path> model = given_or_bundled_model(flags.model);
  if (!model.ok()) return fail(model.status());
  options.model = *model;
  // CLI11 let only known names through.
  options.kv_type = find_row_type(flags.kv_type).value_or(RowType::kF16);
  options.kinds.clear();
  for (const std::string& kind : flags.kinds)
    options.kinds.push_back(find_recall_kind(kind).value_or(RecallKind::kNeedle));
  options.task.haystack = find_haystack(flags.haystack).value_or(Haystack::kSentences);
  options.task.language = find_recall_language(flags.language).value_or(RecallLanguage::kBundled);
  options.task.split = find_recall_split(flags.split).value_or(RecallSplit::kTest);
  const Result<PoliciesReport> report = run_shown(run_policies, options);
  if (!report.ok()) return fail(report.status());
  std::cout << policies_text(*report) << std::flush;
  return write_reports(
      flags.reports, [&](const auto& path) { return write_policies_json(path, *report); },
      [&](const auto& path) { return write_policies_html(path, *report); });
}

void add_name_flag(CLI::App& command, const char* name, std::string& value, const std::vector<std::string>& names,
                   const char* help) {
  command.add_option(name, value, help)->check(CLI::IsMember(names))->type_name("NAME")->capture_default_str();
}

void add_task_flags(CLI::App& command, PoliciesFlags& flags) {
  PoliciesOptions& options = flags.options;
  command.add_option("--kinds", flags.kinds, "Kinds of tasks (ebb bench recall-tasks --help)")
      ->delimiter(',')
      ->check(CLI::IsMember({"needle", "multi_fact", "ten_at_once", "key_value"}))
      ->type_name("KIND,KIND,...")
      ->capture_default_str();
  add_name_flag(command, "--haystack", flags.haystack, {"sentences", "chatter"}, "What facts lie in");
  add_name_flag(command, "--language", flags.language, {"bundled", "english"}, "What facts are told in");
  add_name_flag(command, "--split", flags.split, {"tune", "test"},
                "Names and values: those to choose by, or those to report");
  add_count_flag(command, "--context", options.task.n_tokens, {128, 1 << 20}, "Tokens of a context");
  add_count_flag(command, "--tasks", options.n_tasks, {1, 1 << 16}, "Contexts of each kind and seed");
  add_counts_flag(command, "--seeds", options.seeds, "Seeds of contexts");
  add_count_flag(command, "--mentions", options.task.n_mentions, {0, 64},
                 "Sentences that name an asked subject and tell nothing");
  command.add_flag("--twins", options.task.near_twins, "Each asked fact has a twin that differs in one word");
  command.add_flag("--paraphrased", options.task.paraphrased,
                   "Questions share no words with their facts but the subject");
}

}  // namespace

void add_bench_policies(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<PoliciesFlags>();
  CLI::App* command = bench.add_subcommand("policies", "What each eviction policy loses at equal frames");
  command->footer(kPoliciesFooter);
  PoliciesOptions& options = flags->options;
  add_bundled_model_flag(*command, flags->model);
  command->add_option("--policies", options.policies, "Policies with their parameters; default: every one that evicts")
      ->delimiter(';')
      ->type_name("POLICY;POLICY;...");
  add_counts_flag(*command, "--parts", options.parts, "Parts of the context that stay hot: 8 is an eighth");
  add_task_flags(*command, *flags);
  add_count_flag(*command, "--sinks", options.floors.sink_tokens, {0, 1 << 16},
                 "First tokens that leave last, where a policy wants them");
  add_count_flag(*command, "--recent", options.floors.recent_tokens, {0, 1 << 16},
                 "Last tokens that leave last; a quarter of the budget at most");
  add_count_flag(*command, "--text", options.n_text_tokens, {0, 1 << 16},
                 "Tokens behind a context whose perplexity is taken");
  add_count_flag(*command, "-t,--threads", options.n_threads, {0, 512},
                 "Threads that compute; 0: one per physical core");
  add_kv_type_flag(*command, flags->kv_type, "Type of K and V in frames");
  add_count_flag(*command, "--block-size", options.block_size, {1, 128}, "Tokens of a block: the grain of choosing");
  add_report_flags(*command, flags->reports);
  command->callback([flags, &action] { action = [flags] { return bench_policies(*flags); }; });
}

}  // namespace ebb
