// Referring: questions that speak of what was said before: "How much does it cost?", "And the owner?"
//
// Their own words stand in whatever is asked of other things, too, and what "it" is stands in none of them: so they are looked for with
// what was said before. And answers to what the assistant asked ("Which one?" "The new gate.") are looked for with that. It knows English
// pronouns and how such questions begin; of other languages nothing refers.
// Thread rule: pure functions.
#pragma once

#include <span>
#include <string_view>

#include "policy/cues.h"

namespace ebb {

[[nodiscard]] bool refers_back(std::string_view sentence);

// Gives each cue that asks, or each where none does, and refers back what it is about (Cue::about): the question before it in its message,
// where there is one, else what the user asked before and the first sentence of the reply to that; at most 200 bytes of each. Where nothing
// asks, and the reply did, each of few words is about that question. cues: of the user's last message, which is short.
void find_what_is_meant(std::span<const SaidText> said, std::span<Cue> cues);

}  // namespace ebb
