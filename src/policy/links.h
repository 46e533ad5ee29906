// Links: where one fact leads to another ("the owner of the boat is Ada", "Ada lives in Athens"), the words by which the second is found: those
// that the sentence which answers a cue says beside it.
//
// It knows words and what blocks say, and chooses nothing. Thread rule: pure functions.
#pragma once

#include <span>
#include <vector>

#include "policy/block_texts.h"
#include "policy/cues.h"
#include "policy/select.h"

namespace ebb {

// What is found by the links of each cue that leads, and by theirs, of little less than the cue's weight, the nearest first. `found` is of these
// cues. Where several blocks are as good as the best, what that leads to has its share of the weight; where a sentence goes on beyond its block, it
// leads nowhere there. A sentence answers where it has as much of the cue's rare words as it lacks; a link is a rare word that no cue and no link before it has.
// Cost: for each of 4 steps from each of 4 cues at most 3 passages and a ranking.
[[nodiscard]] std::vector<CueRanking> follow_links(std::span<const Cue> cues, std::span<const CueRanking> found,
                                                   const BlockTexts& texts);

}  // namespace ebb
