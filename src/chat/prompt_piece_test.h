// Pieces of prompts, as tests write them.
//
// Thread rule: a pure function.
#pragma once

#include <string>

#include "chat/chat_prompt.h"

namespace ebb {

// A piece that the template wrote.
inline PromptPiece ours(const std::string& text) { return {.text = text}; }

}  // namespace ebb
