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

// EVOKE's: facts of its multi-fact, host-RAM and churn benches, and of its longest documents.
constexpr std::int32_t kFewFacts = 5;
constexpr std::int32_t kManyFacts = 20;
constexpr std::int32_t kSpreadFacts = 12;
// Messages before and behind the facts of churn, and tokens of each.
constexpr std::int32_t kChurnBefore = 24;
constexpr std::int32_t kChurnBehind = 40;
constexpr std::int32_t kChurnMessageTokens = 80;
// Enough to hold churn's facts, whatever counts them.
constexpr std::int32_t kChurnFactTokens = 4096;

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

// Of many in a row, some are counted together.
void number_probes(DocumentCase& one) {
  constexpr std::size_t kTogether = 5;
  for (std::size_t i = 0; i < one.probes.size(); ++i) {
    const std::size_t first = i / kTogether * kTogether + 1;
    one.probes[i].group = fmt::format("probes {}-{}", first, first + kTogether - 1);
  }
}

// The document of the case is made anew, of its facts.
Status tell_in_messages(DocumentMaker& maker, DocumentCase& one) {
  std::vector<std::string> words;
  for (const DocumentProbe& probe : one.probes) words.push_back(probe.answers.front());
  const auto read = [&](std::int32_t n_messages) -> Status {
    for (std::int32_t i = 0; i < n_messages; ++i) {
      std::string text = "Read this:";
      for (std::int32_t n = 0; n < kChurnMessageTokens;) {
        text += " " + maker.line(words);
        EBB_ASSIGN_OR_RETURN(n, maker.count(text));
      }
      one.messages.push_back({.text = std::move(text), .reply = "I have read it."});
    }
    return {};
  };
  EBB_RETURN_IF_ERROR(read(kChurnBefore));
  for (const DocumentProbe& probe : one.probes) {
    one.messages.push_back({.text = probe.facts.front(), .reply = "I will remember that."});
  }
  EBB_RETURN_IF_ERROR(read(kChurnBehind));
  one.text.clear();
  for (const RecallMessage& message : one.messages) one.text += message.text + "\n";
  one.in_a_row = true;
  number_probes(one);
  return {};
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

// Of those asked for, or all that the language has, relations whose values are many: of some there are too few for so many facts.
std::vector<std::string> roomy_relations(const RecallTaskOptions& task) {
  if (!task.relations.empty()) return task.relations;
  std::vector<std::string> names;
  for (const Relation& relation : relations(task.language)) {
    if (!relation.is_hard && !is_closed(relation.value)) names.emplace_back(relation.name);
  }
  return names;
}

// Facts of a document that are asked for one after the other in one session.
Cases make_row(const Vocabulary& vocabulary, const DocumentCaseOptions& options, std::int32_t n_facts) {
  RecallTaskOptions task = task_options(options, RecallKind::kTenAtOnce, Haystack::kTopics);
  task.n_facts = n_facts;
  task.relations_differ = true;
  if (n_facts > kFewFacts) task.relations = roomy_relations(task);
  EBB_ASSIGN_OR_RETURN(std::vector<DocumentCase> cases, cases_of(vocabulary, task));
  for (DocumentCase& one : cases) one.in_a_row = true;
  return cases;
}

Cases make_multifact(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  EBB_ASSIGN_OR_RETURN(std::vector<DocumentCase> cases, make_row(vocabulary, options, kFewFacts));
  for (DocumentCase& one : cases) {
    for (std::size_t i = 0; i < one.probes.size(); ++i) one.probes[i].group = fmt::format("probe {}", i + 1);
  }
  return cases;
}

Cases make_hostram(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  EBB_ASSIGN_OR_RETURN(std::vector<DocumentCase> cases, make_row(vocabulary, options, kManyFacts));
  for (DocumentCase& one : cases) number_probes(one);
  return cases;
}

// EVOKE's churn: what is told, each in a message of its own, between messages of reading matter that push it out.
Cases make_churn(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  RecallTaskOptions facts = task_options(options, RecallKind::kTenAtOnce, Haystack::kSentences);
  facts.n_facts = kManyFacts;
  facts.n_tokens = kChurnFactTokens;
  facts.relations = roomy_relations(facts);
  EBB_ASSIGN_OR_RETURN(std::vector<DocumentCase> cases, cases_of(vocabulary, facts));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EBB_ASSIGN_OR_RETURN(DocumentMaker maker, DocumentMaker::create(vocabulary, options, "churn",
                                                                    static_cast<std::int32_t>(i), Haystack::kTopics));
    EBB_RETURN_IF_ERROR(tell_in_messages(maker, cases[i]));
  }
  return cases;
}

// By how much of the document lies behind the fact.
Cases make_distance_facts(const Vocabulary& vocabulary, const DocumentCaseOptions& options) {
  constexpr std::array kQuarters = {"0-25 % back", "25-50 % back", "50-75 % back", "75-100 % back"};
  EBB_ASSIGN_OR_RETURN(std::vector<DocumentCase> cases, make_row(vocabulary, options, kSpreadFacts));
  for (DocumentCase& one : cases) {
    for (DocumentProbe& probe : one.probes) {
      const double at = static_cast<double>(one.text.find(probe.facts.front())) / static_cast<double>(one.text.size());
      probe.group = kQuarters[std::min<std::size_t>(3, static_cast<std::size_t>(4.0 * (1.0 - at)))];
    }
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
      {.name = "agent", .family = "", .paraphrases = false, .make = make_agents},
      {.name = "agent_mentions", .family = "", .paraphrases = false, .make = make_agents_with_mentions},
      {.name = "hostram", .family = "", .paraphrases = true, .make = make_hostram},
      {.name = "churn", .family = "", .takes_length = false, .paraphrases = true, .make = make_churn},
      {.name = "distance_passkey", .family = "distance", .paraphrases = false, .make = make_far_passkeys},
      {.name = "distance_facts", .family = "distance", .paraphrases = true, .make = make_distance_facts},
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
