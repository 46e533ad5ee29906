// `ebb bench document`
#include <iostream>
#include <iterator>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/document.h"
#include "cli/bench.h"
#include "cli/bundled_model.h"
#include "cli/engine_flags.h"
#include "cli/terminal.h"
#include "cli/text_file.h"

namespace ebb {
namespace {

constexpr const char* kDocumentFooter = R"(Examples:
  ebb bench document                                the bundled model, 4096 tokens a request; half an hour or so on 2 cores
  ebb bench document --tasks 20 --parts 4,16 --kinds needle --questions last
  ebb bench document --policies streaming,snapkv --paraphrased --json document.json
  ebb bench document -m model.gguf --length 8192 --tasks 10

One request holds a document and a question about it, and the KV budget holds a part of that. Arms: everything hot; a policy alone;
with recall, as ebb serve and ebb run do it; and an oracle that brings back the blocks that tell what is asked, and no others. The
question stands behind the document (last), in front of it (first), or in the next message (next).)";

struct DocumentFlags {
  DocumentOptions options;
  std::string model;
  std::vector<std::string> kinds = {"needle", "multi_fact"};
  std::vector<std::string> places = {"last", "first", "next"};
  std::string haystack = "sentences";
  std::string split = "test";
  std::string language;
  std::string text_file;
  std::string kv_type = "f16";
  std::string json;
  std::string html;
};

// CLI11 let only known names through.
void take_names(const DocumentFlags& flags, DocumentOptions& options) {
  options.kinds.clear();
  for (const std::string& name : flags.kinds) {
    options.kinds.push_back(find_recall_kind(name).value_or(RecallKind::kNeedle));
  }
  options.places.clear();
  for (const std::string& name : flags.places) {
    options.places.push_back(find_question_place(name).value_or(QuestionPlace::kLast));
  }
  const std::string language = !flags.language.empty() ? flags.language : flags.model.empty() ? "bundled" : "english";
  options.task.language = find_recall_language(language).value_or(RecallLanguage::kBundled);
  options.task.split = find_recall_split(flags.split).value_or(RecallSplit::kTest);
  options.task.haystack = find_haystack(flags.haystack).value_or(Haystack::kSentences);
  options.kv_type = find_row_type(flags.kv_type).value_or(RowType::kF16);
}

ExitCode bench_document(const DocumentFlags& flags) {
  DocumentOptions options = flags.options;
  const Result<std::filesystem::path> model = given_or_bundled_model(flags.model);
  if (!model.ok()) return fail(model.status());
  options.model = *model;
  take_names(flags, options);
  std::string text;
  if (!flags.text_file.empty()) {
    Result<std::string> read = read_text(flags.text_file);
    if (!read.ok()) return fail(read.status());
    text = std::move(*read);
    options.task.text = text;
  }
  const Result<DocumentReport> report = run_shown(run_document, options);
  if (!report.ok()) return fail(report.status());
  std::cout << document_text(*report) << std::flush;
  return write_reports(
      {.json = flags.json, .html = flags.html}, [&](const auto& path) { return write_document_json(path, *report); },
      [&](const auto& path) { return write_document_html(path, *report); });
}

void add_question_flags(CLI::App& command, DocumentFlags& flags) {
  RecallTaskOptions& task = flags.options.task;
  task.n_tasks = 20;
  command.add_option("--kinds", flags.kinds, "Kinds of tasks (ebb bench recall-tasks --help)")
      ->delimiter(',')
      ->check(CLI::IsMember({"needle", "multi_fact", "ten_at_once", "key_value"}))
      ->type_name("KIND,KIND,...")
      ->capture_default_str();
  command.add_option("--questions", flags.places, "Where the question stands: last, first, next")
      ->delimiter(',')
      ->check(CLI::IsMember({"last", "first", "next"}))
      ->type_name("PLACE,PLACE,...")
      ->capture_default_str();
  command.add_option("--haystack", flags.haystack, "What lies between the facts: sentences, chatter, text (of --text)")
      ->check(CLI::IsMember({"sentences", "chatter", "text"}))
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--text", flags.text_file, "Plain text that a haystack called text is made of")->type_name("FILE");
  command.add_option("--split", flags.split, "tune or test: they share no subject, no value and no text")
      ->check(CLI::IsMember({"tune", "test"}))
      ->type_name("SPLIT")
      ->capture_default_str();
  command.add_option("--language", flags.language, "bundled or english; default: english with -m, else bundled")
      ->check(CLI::IsMember({"bundled", "english"}))
      ->type_name("NAME");
  command.add_flag("--paraphrased", task.paraphrased, "Ask in other words than the facts");
  command.add_flag("--near-twins", task.near_twins, "Tell facts that differ in one word of the subject");
  add_count_flag(command, "--length", task.n_tokens, {256, 1 << 20}, "Tokens of the document, about");
  add_count_flag(command, "--tasks", task.n_tasks, {1, 10000}, "Documents of each kind");
  add_count_flag(command, "--mentions", task.n_mentions, {0, 100},
                 "Sentences of a document that name what is asked for, and tell nothing of it");
  command.add_option("--seed", task.seed, "Another seed makes other tasks")->type_name("N")->capture_default_str();
}

}  // namespace

void add_bench_document(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<DocumentFlags>();
  CLI::App* command = bench.add_subcommand(
      "document", "Right answers to one request that is longer than the KV budget, by what recall brings back");
  command->footer(kDocumentFooter);
  command->add_option("-m,--model", flags->model, "GGUF file; default: the small model that comes with ebb")
      ->type_name("FILE");
  add_count_flag(*command, "-t,--threads", flags->options.n_threads, {0, 512}, "Threads; 0: one per physical core");
  add_kv_type_flag(*command, flags->kv_type, "Type of K and V in frames");
  add_count_flag(*command, "--block-size", flags->options.block_size, {1, 1024}, "Tokens of a block");
  command->add_option("--policies", flags->options.policies, "What leaves, as ebb run --kv-eviction has it")
      ->delimiter(',')
      ->type_name("POLICY,POLICY,...")
      ->capture_default_str();
  add_counts_flag(*command, "--parts", flags->options.parts,
                  "Parts of the request that the budget holds: 4 is a quarter");
  add_count_flag(*command, "--recall", flags->options.n_recalled_blocks, {1, 1 << 20}, "Blocks to bring back at most");
  add_question_flags(*command, *flags);
  command->add_option("--json", flags->json, "Write the figures to this file too")->type_name("FILE");
  command->add_option("--html", flags->html, "Write a page with plots to this file too")->type_name("FILE");
  command->callback([flags, &action] { action = [flags] { return bench_document(*flags); }; });
}

}  // namespace ebb
