// Turn text: what a user's message adds to a session in a model's chat template, whatever was said before.
//
// Conversation (chat/conversation.h) renders the whole history and is exact for templates that look back; this renders one
// message and needs no history, so that sessions can be very long, and go on in another process. It knows no session.
// Thread rule: functions of their arguments.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/vocabulary.h"

namespace ebb {

// What the session ends with: nothing yet, a reply that ended by itself (its last token is the session's), or one that was
// cut.
enum class Before : std::uint8_t { kNothing, kEndedReply, kCutReply };

// kUnsupported when the model has no template that works, or one that drops earlier replies.
Result<std::vector<Token>> turn_tokens(const Vocabulary& vocabulary, std::string_view message, Before before);

}  // namespace ebb
