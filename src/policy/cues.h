// Cues: what recall looks for: what was just said, cut into the pieces that may each ask for something.
//
// A short message is cut into sentences, so that one that asks for ten things finds all ten, and not ten times what fits its
// whole best. Of a long one, which is mostly there to be read, its first and last sentences are cues: what is asked stands in
// front of a document or behind it. Where some sentences ask, by a question mark or else by how they begin, the others say little
// of what is wanted, and weigh less; of a long message the others are no cues, but for its first and its last line where that is short
// and no sentence, and where none asks all but the outermost two weigh less. Between its ends what a user asks is a cue where it stands
// in a line by itself (policy/asking.h). Of a long one that asks nothing, what is asked was said before it, and weighs more. What a short one asks of "it" is asked of what was said before (policy/referring.h). What was said before the last message weighs less, and what tools and systems say beside the
// user; and what people in a document say in quotation marks asks nobody.
//
// It knows words and no blocks. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/evidence.h"

namespace ebb {

// What the first or last line of a long message weighs beside what asks in it, where it is short and no sentence: "Key: c166-e280". It may
// say what is meant, or be the document's.
inline constexpr double kOuterLineWeight = 0.7;

// Of a message that is longer than twice as much, so many bytes at either end have cues. More: what is to be read is taken for what is asked.
// Less: a question of some sentences loses its first.
inline constexpr std::size_t kCueEdgeBytes = 512;

// A message, or what a tool was called with or returned.
struct SaidText {
  std::string text;
  Source source = Source::kUser;
  // Before the assistant last spoke. It asks where what the user says now is long, to be read: "Where does Ada live?", "Show me the text."
  bool is_before = false;
};

// Where in what was said a cue stands: at the ends of the user's last message, or of one that is not the user's; between those ends; before.
enum class SaidWhere : std::uint8_t { kAtEnds, kWithin, kBefore };

struct Cue {
  std::string text;
  // What it refers to and does not name: "How much does it cost?" Empty where it names what it asks about.
  std::string about;
  double weight = 1.0;  // above 0, at most 1
  // Of what is said later it is greater.
  std::int64_t place = 0;
  // A question, or what is demanded beside one.
  bool asks = false;
  // Of one between the ends that is a question, `text` has its mark.
  SaidWhere where = SaidWhere::kAtEnds;
};

// Of what was said since the assistant last spoke to the user, behind what was said before, oldest first. Heaviest first, of those that weigh the same the
// newest, and of a long message those nearest to its ends; at most 24.
[[nodiscard]] std::vector<Cue> find_cues(std::span<const SaidText> said);
// Of one message of the user's.
[[nodiscard]] std::vector<Cue> find_cues(std::string_view text);

// Those of the greatest weight, and of no less than an outer line beside it: a reply answers them, and they are to be in sight meanwhile.
[[nodiscard]] std::span<const Cue> leading_cues(std::span<const Cue> cues);
// What is looked for: the cue, and what it is about.
[[nodiscard]] std::string wanted_text(const Cue& cue);
// Without the space around it.
[[nodiscard]] std::string_view bare_text(const Cue& cue);
// The first of the heaviest, of those that ask, that was said behind a place; null: none.
[[nodiscard]] const Cue* next_cue(std::span<const Cue> cues, std::int64_t place);

}  // namespace ebb
