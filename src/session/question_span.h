// Where a prompt's end asks: of its last tokens, those from the first of a turn's questions on.
//
// A reply to several questions reads them again before each answer, so that they are to be in sight for as long as it is written. It knows
// tokens and text, and no blocks. Thread rule: pure.
#pragma once

#include <cstdint>
#include <span>

#include "policy/cues.h"
#include "text/vocabulary.h"

namespace ebb {

// `tokens` are a prompt's last. How many of them, counted from the end, there are from the first one of a cue that leads and stands among
// them word for word; 0: none does.
[[nodiscard]] std::int32_t n_asking_tokens(std::span<const Token> tokens, const Vocabulary& vocabulary,
                                           std::span<const Cue> cues);

}  // namespace ebb
