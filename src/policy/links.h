// Links: what the sentences that answer a cue say beside it. Where one fact leads to another ("the owner of the boat is Ada", "Ada lives in
// Athens"), it is by these words that the second is found; and where many speak of what is asked ("Nobody knows the code of the tower"), those
// that say something beside it are likelier to answer.
//
// It knows words and what blocks say, and chooses nothing. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "policy/cues.h"
#include "policy/rare_words.h"
#include "policy/select.h"

namespace ebb {

// A block's text with some of what stands around it, so that no sentence of it is cut; its own is [begin, end). Empty where it cannot be told.
struct Passage {
  std::string text;
  std::size_t begin = 0;
  std::size_t end = 0;
};

// What links are followed through.
struct LinkSource {
  const WordIndex& words;
  std::function<Passage(BlockIndex)> passage;
};

// What is found by the links of each cue that leads, and by theirs, of little less than the cue's weight, the nearest first. `found` is of these
// cues. A sentence answers where it has as much of the cue's rare words as it lacks; a link is a rare word that no cue and no link before it has.
// Cost: for each of 4 steps from each of 4 cues at most 3 passages and a ranking.
[[nodiscard]] std::vector<CueRanking> follow_links(std::span<const Cue> cues, std::span<const CueRanking> found,
                                                   const LinkSource& source);

// Where a crowd of blocks shares a leading cue's words, those come in front that have a sentence, or a line below a heading, which answers as above and
// says a rare word beside the cue; of these the ones with the most of it. Cost: a passage for each of 96 blocks of each of 4 cues.
void prefer_telling(std::span<const Cue> cues, std::vector<CueRanking>& found, const LinkSource& source);

}  // namespace ebb
