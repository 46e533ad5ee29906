// Behind a question: what answers it may begin right there, in the question's own block, and go on in the next one.
//
//   | How much does the chest cost? The chest | costs 506 dollars. In room 0 people ... |
//
// Blocks in which a question stands are left out of what words find, since they share all words with it; what goes on in the next block would
// go with them, whose words say nothing of what is asked.
//
// It knows words and what blocks say, and chooses nothing. Thread rule: pure functions.
#pragma once

#include <span>
#include <vector>

#include "policy/block_texts.h"
#include "policy/cues.h"
#include "policy/select.h"

namespace ebb {

// Takes the blocks where questions stand, `asking`, out of what the leading cues found, which `found` is of, and out of all others'. Where a sentence
// behind a cue has a word of it that tells blocks apart and goes on in the next block, that one has the score instead. Cost: a passage for each of them.
void leave_out_questions(std::span<const Cue> cues, std::vector<CueRanking>& found, std::span<const BlockIndex> asking,
                         const BlockTexts& texts);

}  // namespace ebb
