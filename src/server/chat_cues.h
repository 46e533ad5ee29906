// What a chat's recall looks for: the words of what was said since the assistant last spoke to the user.
//
// In a tool loop that is the user's message, and each call and result since. Where that message is long and asks nothing, what its user, or else
// the first system text, asked before it leads. Thread rule: a pure function.
#pragma once

#include <vector>

#include "chat/chat_request.h"
#include "policy/cues.h"

namespace ebb {

[[nodiscard]] std::vector<Cue> chat_cues(const ChatRequest& request);

}  // namespace ebb
