// Crowd: where many blocks speak of what is asked and tell nothing ("Nobody knows the code of the tower"), those that do.
//
// By words alone what repeats the question's words most comes first. What answers says something beside them that is said in few places: a number, a
// name. So the sentences of a crowd are read, and of the others nothing changes.
//
// It knows words and what blocks say, and chooses nothing. Thread rule: pure functions.
#pragma once

#include <span>
#include <vector>

#include "policy/block_texts.h"
#include "policy/cues.h"
#include "policy/select.h"

namespace ebb {

// Where a crowd of blocks shares a leading cue's words, those come in front that have a sentence, or a line below a heading, which has enough of what
// is rare in the cue and says a rare word beside it; of these the ones with the most of it. `found` is of these cues. Cost: a passage for each of 96
// blocks of each of 4 cues.
void prefer_telling(std::span<const Cue> cues, std::vector<CueRanking>& found, const BlockTexts& texts);

}  // namespace ebb
