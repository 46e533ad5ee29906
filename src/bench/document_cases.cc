#include "bench/document_cases.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/hash.h"
#include "bench/document_makers.h"

namespace ebb {
namespace {

// EVOKE's needle test: so many needles, at these shares of the document.
constexpr std::array kDepths = {0.05, 0.25, 0.5, 0.75, 0.95};
constexpr std::array<std::array<const char*, 5>, 2> kNiahNeedles = {
    {{"code", "location", "price", "deadline", "founding year"},
     {"access code", "location", "price", "deadline", "phone number"}}};

using Cases = Result<std::vector<DocumentCase>>;

DocumentProbe probe_of(const RecallTask& task, const RecallQuestion& question) {
  return {.text = question.text,
          .answers = {question.answer},
          .values = task.values,
          .facts = {question.fact},
          .group = ""};
}

DocumentCase case_of(const RecallTask& task) {
  DocumentCase one{.text = document_of(task), .reply = task.messages.front().reply};
  for (const RecallQuestion& question : task.questions) one.probes.push_back(probe_of(task, question));
  return one;
}

Cases cases_of(const Vocabulary& vocabulary, const RecallTaskOptions& options) {
  EBB_ASSIGN_OR_RETURN(const std::vector<RecallTask> tasks, make_recall_tasks(vocabulary, options));
  std::vector<DocumentCase> cases;
  for (const RecallTask& task : tasks) cases.push_back(case_of(task));
  return cases;
}

RecallTaskOptions task_options(const DocumentCaseOptions& options, RecallKind kind, Haystack own) {
  RecallTaskOptions task = options.task;
  task.kind = kind;
  task.haystack = options.haystack.value_or(own);
  return task;
}

template <RecallKind kKind>
Cases make_recall_cases(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  return cases_of(vocabulary, task_options(options, kKind, Haystack::kSentences));
}

// The i-th case is one of 25 of needle and depth; any five in a row have each needle and each depth once.
Cases make_niah(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  std::vector<DocumentCase> cases;
  for (std::int32_t i = 0; i < options.task.n_tasks; ++i) {
    RecallTaskOptions task = task_options(options, RecallKind::kNeedle, Haystack::kTopics);
    const std::size_t needle = static_cast<std::size_t>(i) % kDepths.size();
    const std::size_t depth = (static_cast<std::size_t>(i) / kDepths.size() + needle) % kDepths.size();
    task.relations = {kNiahNeedles[static_cast<std::size_t>(task.language)][needle]};
    task.places = {kDepths[depth]};
    task.n_tasks = 1;
    task.seed = hash_words({options.task.seed, 0x6E696168, static_cast<std::uint64_t>(i)}).low;
    EBB_ASSIGN_OR_RETURN(const std::vector<RecallTask> tasks, make_recall_tasks(vocabulary, task));
    cases.push_back(case_of(tasks.front()));
    cases.back().probes.front().group = fmt::format("depth {:.0f} %", 100.0 * kDepths[depth]);
  }
  return cases;
}

Cases make_multifact(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  RecallTaskOptions task = task_options(options, RecallKind::kTenAtOnce, Haystack::kTopics);
  task.n_facts = 5;
  task.relations_differ = true;
  EBB_ASSIGN_OR_RETURN(std::vector<DocumentCase> cases, cases_of(vocabulary, task));
  for (DocumentCase& one : cases) {
    one.in_a_row = true;
    for (std::size_t i = 0; i < one.probes.size(); ++i) one.probes[i].group = fmt::format("probe {}", i + 1);
  }
  return cases;
}

Cases make_tenfacts(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  EBB_ASSIGN_OR_RETURN(std::vector<DocumentCase> cases,
                       cases_of(vocabulary, task_options(options, RecallKind::kTenAtOnce, Haystack::kTopics)));
  for (DocumentCase& one : cases) {
    DocumentProbe all;
    for (const DocumentProbe& probe : one.probes) {
      all.text += (all.text.empty() ? "" : " ") + probe.text;
      all.answers.push_back(probe.answers.front());
      all.facts.push_back(probe.facts.front());
    }
    one.probes = {std::move(all)};
  }
  return cases;
}

std::vector<DocumentKind> all_kinds() {
  std::vector<DocumentKind> kinds = {
      {.name = "needle", .family = "", .paraphrases = true, .make = make_recall_cases<RecallKind::kNeedle>},
      {.name = "multi_fact", .family = "", .paraphrases = true, .make = make_recall_cases<RecallKind::kMultiFact>},
      {.name = "ten_at_once", .family = "", .paraphrases = true, .make = make_recall_cases<RecallKind::kTenAtOnce>},
      {.name = "key_value", .family = "", .paraphrases = true, .make = make_recall_cases<RecallKind::kKeyValue>},
      {.name = "niah", .family = "", .paraphrases = true, .make = make_niah},
      {.name = "multifact", .family = "", .paraphrases = true, .make = make_multifact},
      {.name = "tenfacts", .family = "", .paraphrases = true, .make = make_tenfacts},
      {.name = "passkey", .family = "", .paraphrases = false, .make = make_passkeys},
      {.name = "kvret", .family = "", .takes_length = false, .paraphrases = false, .make = make_kvret},
  };
  for (const DocumentKind& kind : ruler_kinds()) kinds.push_back(kind);
  return kinds;
}

}  // namespace

std::span<const DocumentKind> document_kinds() {
  static const std::vector<DocumentKind> kKinds = all_kinds();
  return kKinds;
}

Result<std::vector<const DocumentKind*>> find_document_kinds(std::span<const std::string> names) {
  std::vector<const DocumentKind*> found;
  for (const std::string& name : names) {
    const std::size_t n_before = found.size();
    for (const DocumentKind& kind : document_kinds()) {
      if (kind.name == name || (!name.empty() && kind.family == name)) found.push_back(&kind);
    }
    if (found.size() == n_before) return error(Code::kInvalidArgument, "there is no kind '{}' of documents", name);
  }
  return found;
}

double score_of(std::string_view reply, const DocumentProbe& probe) {
  if (probe.answers.size() == 1) return says_first(reply, probe.answers.front(), probe.values) ? 1.0 : 0.0;
  const auto n_said = std::ranges::count_if(
      probe.answers, [&](const std::string& answer) { return find_word(reply, answer) != std::string_view::npos; });
  return static_cast<double>(n_said) / static_cast<double>(probe.answers.size());
}

}  // namespace ebb
