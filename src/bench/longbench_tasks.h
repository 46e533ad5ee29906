// What `ebb bench longbench` asks: a LongBench file's prompts, or tasks that the bundled model can do, as tokens.
//
// Of a file, each line's prompt is one item. Of the bundled tasks (bench/recall_tasks.h), each context is one, with all its
// questions, each asked right behind the context and by itself: what is read of one context is no independent measurement,
// so an item's score is the mean of its questions'.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/longbench_metrics.h"
#include "bench/recall_tasks.h"
#include "text/vocabulary.h"

namespace ebb {

struct LongBenchQuestion {
  std::vector<Token> tokens;  // behind the context, one at least
  std::vector<std::string> answers;
  std::vector<std::string> classes;
};

struct LongBenchItem {
  std::vector<Token> context;
  std::vector<LongBenchQuestion> questions;
  bool was_truncated = false;

  // Context and the longest question.
  [[nodiscard]] std::int32_t n_prompt_tokens() const;
};

// One data set, or one kind of task.
struct LongBenchColumn {
  std::string name;
  LongBenchMetric metric = LongBenchMetric::kQaF1;
  std::int32_t max_reply_tokens = 0;
  std::vector<std::string> stop_strings;
  // Whether the first line of a reply is all that counts, since examples that the prompt ends with make models go on.
  bool takes_first_line = false;
  std::vector<LongBenchItem> items;

  // 0 to 1: the best of the right answers.
  [[nodiscard]] double score(std::string_view reply, const LongBenchQuestion& question) const;
};

enum class TooLong : std::uint8_t { kTruncate, kRefuse };

struct LongBenchFileOptions {
  // JSON of LongBench's fields, one object a line: dataset, input, context, answers, all_classes.
  std::string lines;
  // LongBench's dataset2prompt.json, or one like it: an object of prompts by data set, with {context} and {input} in them.
  // Empty: prompts of ours, whose scores are not comparable with published ones.
  std::string prompts;
  // The first so many of each data set.
  std::int32_t n_items = 0;
  // Of a prompt, without a chat template's marks.
  std::int32_t max_tokens = 0;
  TooLong too_long = TooLong::kTruncate;
};

// kInvalidArgument names the line, and the data sets that there are; kOutOfBudget for one that is too long and not to be
// truncated.
Result<std::vector<LongBenchColumn>> read_longbench(const Vocabulary& vocabulary, const LongBenchFileOptions& options);
// The most tokens of a reply to any data set.
[[nodiscard]] std::int32_t most_longbench_reply_tokens();

// fact_qa, needle, multi_fact, key_value, ten_at_once, each of n_tasks contexts. Of `task`: kind, haystack and paraphrased
// are not looked at.
Result<std::vector<LongBenchColumn>> make_longbench_columns(const Vocabulary& vocabulary,
                                                            const RecallTaskOptions& task);

}  // namespace ebb
