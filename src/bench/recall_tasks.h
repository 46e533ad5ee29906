// Recall tasks: contexts that tell facts, questions about them, and whether a reply is right. What benches on recall read.
//
//   needle       one fact anywhere in a haystack
//   multi_fact   several facts, one of them asked for
//   ten_at_once  ten facts, all asked for, one question after the other
//   key_value    a JSON object of many pairs and nothing else, one of them asked for
//
// A question repeats the words in which its fact was told, or paraphrases them: then the subject is all that they share. With
// near twins, each asked fact has one that differs from it in one word (of pairs: in one letter of the key) and in its value.
// The splits share no subject, no value and no text between. The same options, the same tasks, on every machine.
//
// It knows no model, only how a vocabulary counts. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/recall_haystack.h"
#include "bench/recall_names.h"
#include "bench/recall_relations.h"
#include "text/vocabulary.h"

namespace ebb {

enum class RecallKind : std::uint8_t { kNeedle, kMultiFact, kTenAtOnce, kKeyValue };

// "needle"; and back.
[[nodiscard]] std::string_view name_of(RecallKind kind);
[[nodiscard]] std::string_view name_of(RecallSplit split);
[[nodiscard]] std::string_view name_of(Haystack haystack);
[[nodiscard]] std::string_view name_of(RecallLanguage language);
[[nodiscard]] std::optional<RecallKind> find_recall_kind(std::string_view name);
[[nodiscard]] std::optional<RecallSplit> find_recall_split(std::string_view name);
[[nodiscard]] std::optional<Haystack> find_haystack(std::string_view name);
[[nodiscard]] std::optional<RecallLanguage> find_recall_language(std::string_view name);

struct RecallTaskOptions {
  RecallKind kind = RecallKind::kNeedle;
  RecallSplit split = RecallSplit::kTune;
  RecallLanguage language = RecallLanguage::kBundled;
  // Of key_value: none is used.
  Haystack haystack = Haystack::kSentences;
  std::int32_t n_tasks = 40;
  // Of a context: its messages and the replies to them, without a chat template's marks. At most so many, and hardly less.
  std::int32_t n_tokens = 1024;
  std::uint64_t seed = 1;
  // The contexts are the same either way, and so is what is asked for.
  bool paraphrased = false;
  bool near_twins = false;
  // 0: eight of multi_fact, ten of ten_at_once. A needle is one; pairs fill the context.
  std::int32_t n_facts = 0;
  // Where asked facts of a needle, several facts and pairs lie, as shares of their contexts, one after the other and again; empty:
  // evenly over all tasks.
  std::vector<double> places;
  // Names of those that facts may be of; empty: all of the language that the bundled model answers well.
  std::vector<std::string> relations;
  // No two facts are of the same relation while there are others.
  bool relations_differ = false;
  // Sentences that name the subject of an asked fact and tell nothing: what looks for words finds them too.
  std::int32_t n_mentions = 0;
  // Of one message, about; a bench reads message by message. Pairs are one message.
  std::int32_t message_tokens = 200;
  // What Haystack::kText is taken from.
  std::string_view text;
};

struct RecallMessage {
  std::string text;
  // What the model is taken to have answered, since its own words would differ from arm to arm.
  std::string reply;
};

struct RecallQuestion {
  std::string text;
  std::string answer;
  // "owner"; of pairs, "pair".
  std::string relation;
  // The sentence that told it, as it stands in one of the messages.
  std::string fact;
  bool is_paraphrased = false;
  bool has_twin = false;
  // Where the fact begins, as a share of the context's tokens, 0..1.
  double position = 0.0;
};

struct RecallTask {
  RecallKind kind = RecallKind::kNeedle;
  RecallSplit split = RecallSplit::kTune;
  RecallLanguage language = RecallLanguage::kBundled;
  Haystack haystack = Haystack::kSentences;
  std::uint64_t seed = 0;
  std::int32_t n_tokens = 0;
  std::vector<RecallMessage> messages;
  // To be asked in this order.
  std::vector<RecallQuestion> questions;
  // What all facts of the context say, asked for or not. All differ; none stands elsewhere in the context or in a question.
  std::vector<std::string> values;
};

// kInvalidArgument for options that leave no task and a text without sentences; kOutOfBudget for facts that a context of
// n_tokens does not hold.
Result<std::vector<RecallTask>> make_recall_tasks(const Vocabulary& vocabulary, const RecallTaskOptions& options);

// What its messages say, as one text, a line each, without the words that ask to read them: a model that is told to read says that
// it did.
[[nodiscard]] std::string document_of(const RecallTask& task);

// Whether the reply gives the answer, as a word (find_word), with none of the other values before it.
[[nodiscard]] bool says_first(std::string_view reply, std::string_view answer, std::span<const std::string> values);
// The same of a question and all values of its task.
[[nodiscard]] bool is_right(std::string_view reply, const RecallTask& task, const RecallQuestion& question);

}  // namespace ebb
