// Cue sentences: what of a message may be a cue (policy/cues.h): its sentences, of a long one those at its ends and what lines between them ask, and
// how each is said.
//
// It gives no weights. Thread rule: pure functions; sentences are views of the text that they are of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "policy/asking.h"

namespace ebb {

struct Sentence {
  std::string_view text;
  // With a question mark; or by how it begins.
  bool asks = false;
  bool demands = false;
  // A line by itself, without an end mark.
  bool is_line = false;
  // The first or the last of a long message.
  bool is_outermost = false;
  // Somebody in what is to be read says it.
  bool is_quoted = false;
  // Of a long message, between its ends; of a line that goes on into one of them.
  bool is_within = false;
  bool is_cut_line = false;
  // It stands in an outer paragraph or line that asks: what asks elsewhere is likelier the document's.
  bool is_apart = false;
};

// The text may begin or go on beyond what is given.
enum class CutAt : std::uint8_t { kNowhere, kBegin, kEnd };

// Of a long message: cues stand before n_first and from last_begin on. Where an outer paragraph asks farther from its end of the message, as
// where how to answer stands beside what is asked, the end is as long as that paragraph.
struct Ends {
  std::size_t n_first = 0;
  std::size_t last_begin = 0;
};

// What lines between the ends of a long message ask, the last first; and of lines that an end cuts, what it has not whole.
struct Within {
  std::vector<Sentence> sentences;
  // Between the ends as a whole.
  std::size_t n_lines = 0;
  bool cuts_first = false;
  bool cuts_last = false;
};

[[nodiscard]] Ends find_ends(std::string_view text);
// Each question with its mark, so that it is told from what answers in the same words. What is whole in an end is not told twice.
[[nodiscard]] Within find_within(std::string_view text, const Ends& ends);
// The last first; of a long text its last, its first, the one before the last, and so on inwards.
[[nodiscard]] std::vector<Sentence> find_sentences(std::string_view text, const Ends& ends, const Within& within);
// Of a list a word or two to a line go with what stands before them; of a document, which is to be read, they do not.
[[nodiscard]] std::vector<Sentence> split_sentences(std::string_view text, CutAt cut, QuoteMarks quotes = {});

}  // namespace ebb
