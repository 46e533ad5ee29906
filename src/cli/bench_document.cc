// `ebb bench document`
#include <iostream>
#include <iterator>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/document.h"
#include "cli/bench.h"
#include "cli/bundled_model.h"
#include "cli/engine_flags.h"
#include "cli/recall_task_flags.h"
#include "cli/terminal.h"
#include "cli/text_file.h"

namespace ebb {
namespace {

constexpr const char* kDocumentFooter = R"(Examples:
  ebb bench document                                the bundled model, 4096 tokens a request; half an hour or so on 2 cores
  ebb bench document --tasks 20 --parts 4,16 --kinds needle --questions last
  ebb bench document --policies streaming,snapkv --paraphrased --json document.json
  ebb bench document --kinds niah,multifact,tenfacts --policies recency,h2o,snapkv,evoke --budgets 512,1024,2048
  ebb bench document --kinds ruler --length 4096,16384 --questions last --html ruler.html
  ebb bench document --kinds passkey --length 30000 --questions last --budgets 2048
  ebb bench document --baselines --kinds niah,multifact --questions next --budgets 512,1024 --html baselines.html
  ebb bench document --kinds agent,agent_mentions --questions next,tool --budgets 512,1024 --arms alone,recall,oracle
  ebb bench document --kinds churn --questions next --budgets 1024 --arms recall,breadcrumb,oracle,recompute,discard
  ebb bench document --kinds distance --length 4096,16384 --questions next --budgets 2048 --recall-places original,tail,compacted --recall-renew 0,8
  ebb bench document --kinds hostram --length 12000 --questions next --budgets 1024 --arms recall,disk
  ebb bench document --ablation --kinds niah --questions next --budgets 1024
  ebb bench document -m model.gguf --length 8192 --tasks 10

One request holds a document and a question about it, and the KV budget holds a part of that. Kinds: needle, multi_fact,
ten_at_once and key_value (ebb bench recall-tasks); EVOKE's niah (5 needles at 5 depths), multifact (5 facts, asked for in a row in
one session) and tenfacts (asked for in one message); passkey; kvret (75 and 140 pairs); and ruler, all 13 of RULER's families in
miniature, or one of them: niah_single_1, vt, cwe, fwe, qa_1, ... EVOKE's agent (files that a tool returned, the first with the
setting that is asked for; agent_mentions: the others speak of it), hostram (20 facts in a row), churn (20 facts, each in a message of
its own among 64 others) and distance (a pass key near the beginning, 12 facts all over). Arms: everything hot; a policy alone; with
recall, as ebb serve and ebb run do it; an oracle that brings back the blocks that tell what is asked, and no others; breadcrumb and
discard, which keep no bytes; recompute, the oracle's blocks computed again; disk, recall with RAM for 8 blocks and a disk for the
others. --baselines has the arms of papers, ours by each selector and an oracle instead; --ablation ours with one thing changed, and
all combinations of selectors, moment, gate and policy; both mark what is worse or better than ours. The question stands behind the document (last), in front of it (first), in the next message (next), or in what a tool
returns once the user has said to go on (tool).)";

struct DocumentFlags {
  DocumentOptions options;
  std::string model;
  std::string embedding_model;
  std::vector<std::string> places = {"last", "first", "next"};
  std::vector<std::string> haystack;
  std::vector<std::string> recall_places = {"original"};
  std::vector<std::int32_t> renewed = {0};
  bool baselines = false;
  bool ablation = false;
  RecallTaskFlags task;
  std::string pairs_file;
  std::string pairs;
  std::string kv_type = "f16";
  ReportFlags reports;
};

// CLI11 let only known names through.
void take_names(const DocumentFlags& flags, DocumentOptions& options) {
  options.places.clear();
  for (const std::string& name : flags.places) {
    options.places.push_back(find_question_place(name).value_or(QuestionPlace::kLast));
  }
  options.arms.renewed = flags.renewed;
  options.arms.places.clear();
  for (const std::string& name : flags.recall_places) {
    options.arms.places.push_back(find_recall_place(name).value_or(RecallPlace::kOriginal));
  }
  if (flags.baselines) options.list = baselines(!flags.embedding_model.empty());
  if (flags.ablation) options.list = ablation();
  if (!flags.haystack.empty()) options.cases.haystack = haystacks_of(flags.haystack).front();
  options.kv_type = find_row_type(flags.kv_type).value_or(RowType::kF16);
}

ExitCode bench_document(DocumentFlags& flags) {
  DocumentOptions options = flags.options;
  const Result<std::filesystem::path> model = given_or_bundled_model(flags.model);
  if (!model.ok()) return fail(model.status());
  options.model = *model;
  options.embedding_model = flags.embedding_model;
  take_names(flags, options);
  if (const Status status = take_recall_task_flags(flags.task, !flags.model.empty(), options.cases.task);
      !status.ok()) {
    return fail(status);
  }
  if (!flags.pairs_file.empty()) {
    Result<std::string> read = read_text(flags.pairs_file, kMostDataBytes);
    if (!read.ok()) return fail(read.status());
    flags.pairs = std::move(*read);
    options.cases.pairs = flags.pairs;
  }
  const Result<DocumentReport> report = run_shown(run_document, options);
  if (!report.ok()) return fail(report.status());
  std::cout << document_text(*report) << std::flush;
  return write_reports(
      flags.reports, [&](const auto& path) { return write_document_json(path, *report); },
      [&](const auto& path) { return write_document_html(path, *report); });
}

// Every kind and family, once.
std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const DocumentKind& kind : document_kinds()) {
    names.emplace_back(kind.name);
    if (!kind.family.empty() && std::ranges::find(names, kind.family) == names.end()) names.emplace_back(kind.family);
  }
  return names;
}

void add_names_flag(CLI::App& command, const char* name, std::vector<std::string>& values,
                    std::vector<std::string> known, const char* help) {
  command.add_option(name, values, help)
      ->delimiter(',')
      ->check(CLI::IsMember(std::move(known)))
      ->type_name("NAME,NAME,...")
      ->capture_default_str();
}

void add_case_flags(CLI::App& command, DocumentFlags& flags) {
  DocumentOptions& options = flags.options;
  RecallTaskOptions& task = options.cases.task;
  task.n_tasks = 20;
  add_names_flag(command, "--kinds", options.kinds, kind_names(), "Kinds of documents and questions, as below");
  add_names_flag(command, "--questions", flags.places, {"last", "first", "middle", "instructed", "next", "tool"},
                 "Where the question stands: last, first, next, tool");
  add_counts_flag(command, "--length", options.lengths, "Tokens of a document, about");
  add_haystack_flag(command, "--haystack", flags.haystack, true);
  add_recall_task_flags(command, flags.task, task);
  command.add_flag("--paraphrased", task.paraphrased, "Ask in other words than the facts");
  command.add_flag("--near-twins", task.near_twins, "Tell facts that differ in one word of the subject");
  command
      .add_option(
          "--pairs", flags.pairs_file,
          "What kvret asks of: a file of lost-in-the-middle's kv_retrieval data, unpacked; default: pairs of ours")
      ->type_name("FILE");
}

void add_arm_flags(CLI::App& command, DocumentFlags& flags) {
  DocumentOptions& options = flags.options;
  command.add_option("--policies", options.arms.policies, "What leaves, as ebb run --kv-eviction has it")
      ->delimiter(',')
      ->type_name("POLICY,POLICY,...")
      ->capture_default_str();
  add_names_flag(command, "--arms", options.arms.arms,
                 {"alone", "recall", "oracle", "breadcrumb", "discard", "recompute", "disk"},
                 "What comes back, as below");
  command
      .add_option(
          "--selectors", options.arms.selectors,
          "Who chooses what recall brings back: recall, as ebb serve has it, or as ebb run --selectors has them")
      ->delimiter(',')
      ->type_name("NAME,NAME+NAME,...")
      ->capture_default_str();
  command
      .add_option(
          "--recall-renew", flags.renewed,
          "Of each block that comes back, first tokens that are computed again, as ebb run --kv-recall-renew has it; "
          "several: an arm for each")
      ->delimiter(',')
      ->check(CLI::Range(0, kMostRenewed))
      ->type_name("N,N,...")
      ->default_str("0");
  add_names_flag(command, "--recall-places", flags.recall_places, {"original", "compacted", "tail"},
                 "Where what comes back lies, as ebb run --kv-recall-place has it");
  CLI::Option* const baselines =
      command.add_flag("--baselines", flags.baselines, "The arms of papers and ours, instead");
  CLI::Option* const ablation = command.add_flag("--ablation", flags.ablation, "Ours with one thing changed, instead");
  baselines->excludes(ablation);
  for (const char* const name : {"--policies", "--arms", "--selectors", "--recall-places", "--recall-renew"}) {
    baselines->excludes(name);
    ablation->excludes(name);
  }
  add_counts_flag(command, "--parts", options.parts, "Parts of the request that the budget holds: 4 is a quarter");
  add_counts_flag(command, "--budgets", options.budgets, "Tokens that the budget holds, instead of parts");
  command
      .add_option("--recall", options.n_recalled_blocks,
                  "Blocks to bring back at most (default: as many as hold 512 tokens, 8 of 64)")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("N");
}

}  // namespace

void add_bench_document(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<DocumentFlags>();
  CLI::App* command = bench.add_subcommand(
      "document", "Right answers to one request that is longer than the KV budget, by what recall brings back");
  command->footer(kDocumentFooter);
  add_bundled_model_flag(*command, flags->model);
  add_count_flag(*command, "-t,--threads", flags->options.n_threads, {0, 512}, "Threads; 0: one per physical core");
  command->add_option("--embedding-model", flags->embedding_model, "GGUF file for the selector embedding")
      ->type_name("FILE");
  add_kv_type_flag(*command, flags->kv_type, "Type of K and V in frames");
  add_count_flag(*command, "--block-size", flags->options.block_size, {0, 1024},
                 "Tokens of a block; 0: as engines choose it for each budget");
  add_arm_flags(*command, *flags);
  add_case_flags(*command, *flags);
  add_report_flags(*command, flags->reports);
  command->callback([flags, &action] { action = [flags] { return bench_document(*flags); }; });
}

}  // namespace ebb
