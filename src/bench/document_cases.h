// Document cases: what the document bench asks: a document, questions about it, and what their answers must say.
//
// A kind makes cases. Those of recall tasks (bench/recall_tasks.h) are asked each by itself:
//
//   needle, multi_fact, ten_at_once, key_value
//
// those of EVOKE's benches and of the papers that it is held against:
//
//   niah        one of five needles at one of five depths, in paragraphs about topics
//   multifact   five facts of five relations, asked for one after the other in one session
//   tenfacts    ten facts, asked for in one message
//   passkey     a number in a few sentences that are said over and over
//   kvret       75 and 140 pairs of uuids, one of them asked for
//   agent       a coding agent's files, read one after the other by calls of a tool; the first has the setting that is asked for
//   agent_mentions   the same, where each later file speaks of that setting and says no value
//   hostram     twenty facts, asked for one after the other in one session
//   churn       twenty facts, a message each, between messages that push them out; asked for one after the other
//   distance_passkey, distance_facts   six digits near the beginning; twelve facts all over, asked for one after the other
//
// and "ruler", RULER's 13 families in miniature (bench/document_ruler.cc). It knows no model, only how a vocabulary counts. The same
// options, the same cases, on every machine. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/recall_tasks.h"

namespace ebb {

struct DocumentProbe {
  std::string text;
  // All are wanted; of several, each is a part of the score.
  std::vector<std::string> answers;
  // Values that are wrong in front of a single answer.
  std::vector<std::string> values;
  // What tells the answers, as it stands in the document; none: all of it does.
  std::vector<std::string> facts;
  // What it is counted by beside its kind: a depth, a place in a row. May be empty.
  std::string group;
};

// What a tool returned.
struct DocumentFile {
  std::string name;
  std::string text;
};

struct DocumentCase {
  // Lines, the last one ended.
  std::string text;
  // The same where it is read by calls of a tool; empty: the user says all of it.
  std::vector<DocumentFile> files = {};
  // The same where it was said in many messages, when what is asked is a message of its own; empty: in one.
  std::vector<RecallMessage> messages = {};
  // What the model is taken to have answered where no question comes with the document.
  std::string reply = "I have read it.";
  std::vector<DocumentProbe> probes;
  // In one session, the next behind the reply to the one before; else each in a session of its own.
  bool in_a_row = false;
};

struct DocumentCaseOptions {
  // Its kind is not looked at, and of kinds that paraphrase nothing neither are paraphrased and near_twins.
  RecallTaskOptions task;
  // None: each kind's own.
  std::optional<Haystack> haystack;
  // For kvret: lines of lost-in-the-middle's kv_retrieval data; empty: pairs of ours.
  std::string_view pairs;
};

struct DocumentKind {
  std::string_view name;
  // Kinds that are named by it together; may be empty.
  std::string_view family;
  // Whether its documents are as long as asked for; else as long as what they hold.
  bool takes_length = true;
  // Whether its questions can be put in other words, and its facts have near twins.
  bool paraphrases = false;
  Result<std::vector<DocumentCase>> (*make)(const Vocabulary& vocabulary, const DocumentCaseOptions& options) = nullptr;
};

[[nodiscard]] std::span<const DocumentKind> document_kinds();
// Names of kinds and families, families for all of theirs. kInvalidArgument says which name is none.
Result<std::vector<const DocumentKind*>> find_document_kinds(std::span<const std::string> names);

// 0..1: whether the reply says the answer and no other value before it; of several answers, the share that it says.
[[nodiscard]] double score_of(std::string_view reply, const DocumentProbe& probe);

}  // namespace ebb
