#include "bench/longbench_tasks.h"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "bench/json_lines.h"
#include "bench/recall_prompts.h"

namespace ebb {
namespace {

// Texts of a line: an answer is held against each reply word by word, so it is bounded.
constexpr std::size_t kMostAnswers = 256;
constexpr std::size_t kMostAnswerBytes = std::size_t{64} << 10;

// The English data sets, and lsht, whose measures need no other language's word breaking; tokens of a reply as LongBench has
// them.
struct DataSet {
  std::string_view name;
  LongBenchMetric metric;
  std::int32_t max_reply_tokens;
  // The context ends in examples that the input goes on: no chat template, and the reply's first line is the answer.
  bool is_few_shot = false;
};
constexpr std::array kDataSets = {
    DataSet{"narrativeqa", LongBenchMetric::kQaF1, 128},
    DataSet{"qasper", LongBenchMetric::kQaF1, 128},
    DataSet{"multifieldqa_en", LongBenchMetric::kQaF1, 64},
    DataSet{"hotpotqa", LongBenchMetric::kQaF1, 32},
    DataSet{"2wikimqa", LongBenchMetric::kQaF1, 32},
    DataSet{"musique", LongBenchMetric::kQaF1, 32},
    DataSet{"gov_report", LongBenchMetric::kRougeL, 512},
    DataSet{"qmsum", LongBenchMetric::kRougeL, 512},
    DataSet{"multi_news", LongBenchMetric::kRougeL, 512},
    DataSet{"trec", LongBenchMetric::kClassification, 64, true},
    DataSet{"lsht", LongBenchMetric::kClassification, 64, true},
    DataSet{"triviaqa", LongBenchMetric::kQaF1, 32, true},
    DataSet{"samsum", LongBenchMetric::kRougeL, 128, true},
};

Result<const DataSet*> find_data_set(std::string_view name) {
  const auto found = std::ranges::find(kDataSets, name, &DataSet::name);
  if (found != kDataSets.end()) return &*found;
  std::vector<std::string_view> names;
  for (const DataSet& of : kDataSets) names.push_back(of.name);
  return error(Code::kInvalidArgument, "no measure for a data set '{}'; there is one for {}", name,
               fmt::join(names, ", "));
}

// Ours, where none is given.
std::string_view prompt_of(const DataSet& data_set, bool has_input) {
  if (data_set.is_few_shot) return "{context}\n{input}";
  if (!has_input) return "{context}\n\nSum up the text above on one page.\n\nSummary:";
  if (data_set.metric == LongBenchMetric::kRougeL) {
    return "{context}\n\nAnswer the following about the text above in a few sentences.\n\n{input}\n\nAnswer:";
  }
  return "{context}\n\nAnswer the question about the text above in a few words, and say nothing else.\n\n"
         "Question: {input}\n\nAnswer:";
}

std::string fill_in(std::string_view prompt, std::string_view context, std::string_view input) {
  constexpr std::string_view kContext = "{context}";
  constexpr std::string_view kInput = "{input}";
  std::string text;
  while (!prompt.empty()) {
    if (prompt.starts_with(kContext)) {
      text += context;
      prompt.remove_prefix(kContext.size());
    } else if (prompt.starts_with(kInput)) {
      text += input;
      prompt.remove_prefix(kInput.size());
    } else {
      text += prompt.front();
      prompt.remove_prefix(1);
    }
  }
  return text;
}

class LongBenchReader {
 public:
  LongBenchReader(const Vocabulary& vocabulary, const LongBenchFileOptions& options, const Json& prompts)
      : vocabulary_(vocabulary), options_(options), prompts_(prompts) {}

  Status take(JsonFields& line) {
    const std::string name = line.needed_text("dataset");
    const std::string context = line.needed_text("context");
    const std::string input = line.text("input");
    LongBenchQuestion question{.answers = line.texts("answers", kMostAnswers),
                               .classes = line.texts("all_classes", kMostAnswers)};
    EBB_RETURN_IF_ERROR(line.status());
    EBB_ASSIGN_OR_RETURN(const DataSet* const data_set, find_data_set(name));
    EBB_RETURN_IF_ERROR(check(question, *data_set));
    LongBenchColumn& column = column_of(*data_set);
    if (std::ssize(column.items) >= options_.n_items) return {};
    const std::string ours(prompt_of(*data_set, !input.empty()));
    const std::string prompt = prompts_.is_null() ? ours : text_member(prompts_, name);
    if (prompt.empty()) return error(Code::kInvalidArgument, "the file of prompts has none for {}", name);
    EBB_ASSIGN_OR_RETURN(LongBenchItem item, make_item(*data_set, fill_in(prompt, context, input)));
    question.tokens = {item.context.back()};
    item.context.pop_back();
    item.questions.push_back(std::move(question));
    column.items.push_back(std::move(item));
    return {};
  }

  [[nodiscard]] std::vector<LongBenchColumn> columns() && { return std::move(columns_); }

 private:
  static Status check(const LongBenchQuestion& question, const DataSet& data_set) {
    if (question.answers.empty()) return error(Code::kInvalidArgument, "'answers' is empty; nothing could be right");
    for (const std::string& answer : question.answers) {
      if (answer.size() > kMostAnswerBytes) {
        return error(Code::kInvalidArgument, "an answer of {} bytes, {} at most", answer.size(), kMostAnswerBytes);
      }
    }
    if (data_set.metric == LongBenchMetric::kClassification && question.classes.empty()) {
      return error(Code::kInvalidArgument, "'all_classes' is empty, and {} asks which of them it is", data_set.name);
    }
    return {};
  }

  // Its context is the whole prompt.
  Result<LongBenchItem> make_item(const DataSet& data_set, std::string prompt) const {
    LongBenchItem item;
    EBB_ASSIGN_OR_RETURN(const std::vector<Token> tokens, vocabulary_.tokenize(prompt, {.add_bos = false}));
    if (std::ssize(tokens) > options_.max_tokens) {
      if (options_.too_long == TooLong::kRefuse) {
        return error(Code::kOutOfBudget,
                     "a prompt of {} tokens, {} at most; truncate it, or take a model of a longer context",
                     tokens.size(), options_.max_tokens);
      }
      // The middle is left out, since instructions stand at both ends.
      const std::span<const Token> all = tokens;
      const auto n_half = static_cast<std::size_t>(options_.max_tokens / 2);
      EBB_ASSIGN_OR_RETURN(const std::string begin, vocabulary_.detokenize(all.first(n_half)));
      EBB_ASSIGN_OR_RETURN(const std::string end, vocabulary_.detokenize(all.last(n_half)));
      prompt = begin + end;
      item.was_truncated = true;
    }
    const bool in_template = has_chat_template(vocabulary_) && !data_set.is_few_shot;
    EBB_ASSIGN_OR_RETURN(
        item.context, in_template ? turn_tokens(vocabulary_, prompt, Before::kNothing) : vocabulary_.tokenize(prompt));
    if (item.context.size() < 2) return error(Code::kInvalidArgument, "a prompt of {} tokens", item.context.size());
    return item;
  }

  LongBenchColumn& column_of(const DataSet& data_set) {
    const auto found = std::ranges::find(columns_, data_set.name, &LongBenchColumn::name);
    if (found != columns_.end()) return *found;
    columns_.push_back({.name = std::string(data_set.name),
                        .metric = data_set.metric,
                        .max_reply_tokens = data_set.max_reply_tokens,
                        .takes_first_line = data_set.is_few_shot});
    return columns_.back();
  }

  const Vocabulary& vocabulary_;
  const LongBenchFileOptions& options_;
  const Json& prompts_;
  std::vector<LongBenchColumn> columns_;
};

// --- tasks that the bundled model can do ---

struct TaskColumn {
  const char* name;
  RecallKind kind;
  Haystack haystack;
  bool paraphrased;
  LongBenchMetric metric;
};
// One question is measured by the words of its reply, as LongBench's are; the others by which of the context's values it names,
// since the bundled model answers in sentences, which costs a right answer most of its F1.
constexpr std::array kTaskColumns = {
    TaskColumn{"fact_qa", RecallKind::kNeedle, Haystack::kChatter, true, LongBenchMetric::kQaF1},
    TaskColumn{"needle", RecallKind::kNeedle, Haystack::kSentences, false, LongBenchMetric::kClassification},
    TaskColumn{"multi_fact", RecallKind::kMultiFact, Haystack::kSentences, false, LongBenchMetric::kClassification},
    TaskColumn{"key_value", RecallKind::kKeyValue, Haystack::kSentences, false, LongBenchMetric::kClassification},
    TaskColumn{"ten_at_once", RecallKind::kTenAtOnce, Haystack::kSentences, false, LongBenchMetric::kClassification},
};
// Longer than any answer; it bounds a reply that does not end.
constexpr std::int32_t kMostTaskReplyTokens = 24;

Result<LongBenchItem> item_of(const Vocabulary& vocabulary, const RecallTask& task) {
  EBB_ASSIGN_OR_RETURN(const RecallContext context, recall_context(vocabulary, task));
  LongBenchItem item{.context = context.tokens};
  for (const RecallQuestion& asked : task.questions) {
    LongBenchQuestion question{.answers = {asked.answer}, .classes = task.values};
    EBB_ASSIGN_OR_RETURN(question.tokens, recall_question(vocabulary, asked.text, context.ends));
    item.questions.push_back(std::move(question));
  }
  return item;
}

}  // namespace

std::int32_t LongBenchItem::n_prompt_tokens() const {
  std::size_t n_question = 0;
  for (const LongBenchQuestion& question : questions) n_question = std::max(n_question, question.tokens.size());
  return static_cast<std::int32_t>(context.size() + n_question);
}

double LongBenchColumn::score(std::string_view reply, const LongBenchQuestion& question) const {
  if (takes_first_line) {
    reply.remove_prefix(std::min(reply.find_first_not_of('\n'), reply.size()));
    reply = reply.substr(0, reply.find('\n'));
  }
  double best = 0.0;
  for (const std::string& answer : question.answers) {
    switch (metric) {
      case LongBenchMetric::kQaF1: best = std::max(best, qa_f1(reply, answer)); break;
      case LongBenchMetric::kRougeL: best = std::max(best, rouge_l(reply, answer)); break;
      case LongBenchMetric::kClassification:
        best = std::max(best, classification(reply, answer, question.classes));
        break;
    }
  }
  return best;
}

std::int32_t most_longbench_reply_tokens() {
  return std::ranges::max_element(kDataSets, {}, &DataSet::max_reply_tokens)->max_reply_tokens;
}

Result<std::vector<LongBenchColumn>> read_longbench(const Vocabulary& vocabulary, const LongBenchFileOptions& options) {
  Json prompts;
  if (!options.prompts.empty()) {
    EBB_ASSIGN_OR_RETURN(prompts, parse_json(options.prompts));
    if (!prompts.is_object()) {
      return error(Code::kInvalidArgument, "the file of prompts is no JSON object of prompts by data set");
    }
  }
  LongBenchReader reader(vocabulary, options, prompts);
  EBB_RETURN_IF_ERROR(read_json_lines(options.lines, [&](JsonFields& line) { return reader.take(line); }));
  return std::move(reader).columns();
}

Result<std::vector<LongBenchColumn>> make_longbench_columns(const Vocabulary& vocabulary,
                                                            const RecallTaskOptions& task) {
  std::vector<LongBenchColumn> columns;
  for (const TaskColumn& of : kTaskColumns) {
    RecallTaskOptions asked = task;
    asked.kind = of.kind;
    asked.haystack = of.haystack;
    asked.paraphrased = of.paraphrased;
    EBB_ASSIGN_OR_RETURN(const std::vector<RecallTask> tasks, make_recall_tasks(vocabulary, asked));
    LongBenchColumn column{.name = of.name,
                           .metric = of.metric,
                           .max_reply_tokens = kMostTaskReplyTokens,
                           .stop_strings = recall_stops(vocabulary)};
    for (const RecallTask& one : tasks) {
      EBB_ASSIGN_OR_RETURN(column.items.emplace_back(), item_of(vocabulary, one));
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace ebb
