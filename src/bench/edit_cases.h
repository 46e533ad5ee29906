// Edit cases: a conversation, the same conversation once a client has changed something early in it, and questions whose answers the
// change gave, took or left.
//
//   before   system | file | reply | file with the old value | ... | file | reply | "Go on."
//   after    system | file | reply | what the edit made of it | ... | file | reply | a question
//
// Kinds of edits, as agents make them:
//
//   changed    a file is said anew, with another value
//   cleared    a tool's result gives way to a line that says so
//   thinking   what a reply had thought, of the old value, is dropped; a later message tells the value
//   reminder   a reminder moves from an early message to the last one, with another value
//   clock      the system text, at the very beginning, has another time and another value
//   summary    three messages give way to one that sums them up, with another value
//
// Half of the cases tell a fact; the other half tell a number that a variable has, and a message behind the edit that another variable
// has the first one's: what later text concluded from the old value. Values and names are of the split, and differ.
//
// It knows no model, only how a vocabulary counts. The same options, the same cases. Thread rule: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/recall_tasks.h"
#include "json/json_fields.h"

namespace ebb {

enum class EditKind : std::uint8_t { kChanged, kCleared, kThinking, kReminder, kClock, kSummary };
inline constexpr std::array kEditKinds = {EditKind::kChanged,  EditKind::kCleared, EditKind::kThinking,
                                          EditKind::kReminder, EditKind::kClock,   EditKind::kSummary};
[[nodiscard]] std::string_view name_of(EditKind kind);

// What a question is about.
enum class EditMatter : std::uint8_t {
  kFact,       // what the edit changed: that it is said as it is now; where it was cleared: that it is not said
  kConcluded,  // what a later message concluded from that
  kBehind,     // a fact behind the edit, which left it alone
};
inline constexpr std::size_t kEditMatters = 3;
[[nodiscard]] std::string_view name_of(EditMatter matter);

struct EditProbe {
  EditMatter matter = EditMatter::kFact;
  std::string text;
  // All are to be said, what was concluded last; none: the old value is not to be.
  std::vector<std::string> answers;
  // As it was before the edit; empty where nothing of it was.
  std::string old_value;
};

struct EditCase {
  EditKind kind = EditKind::kChanged;
  std::int32_t n_tokens = 0;  // that were asked for
  Json before;                // messages of a chat request
  Json after;                 // the same, without a question
  std::vector<EditProbe> probes;
};

struct EditCaseOptions {
  RecallSplit split = RecallSplit::kTest;
  RecallLanguage language = RecallLanguage::kBundled;
  // Of each kind.
  std::int32_t n_cases = 10;
  std::int32_t n_tokens = 4096;
  // Of one message, about.
  std::int32_t message_tokens = 300;
  std::uint64_t seed = 1;
};

// kInvalidArgument where a history of n_tokens has fewer than the six messages that edits need.
Result<std::vector<EditCase>> make_edit_cases(const Vocabulary& vocabulary, const EditCaseOptions& options,
                                              EditKind kind);

enum class EditReply : std::uint8_t { kRight, kStale, kWrong };
// Stale: it says the old value, or leaves out what was concluded from the new one.
[[nodiscard]] EditReply judge(const EditProbe& probe, std::string_view reply);

}  // namespace ebb
