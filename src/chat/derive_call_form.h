// How a chat template writes calls, found out by rendering some: a call with known name, arguments and id, two calls, values of each type.
//
// It knows no family. Forms whose arguments are neither JSON nor one tag a key, or that say the name twice, are beyond it. What it finds
// may still be wrong, and is to be tried (chat/taught_calls.h).
//
// Thread rule: a function of its arguments.
#pragma once

#include <vector>

#include "chat/calls/call_form.h"
#include "chat/probe_reply.h"

namespace ebb {

// Likelier first: as the template writes calls behind text, and by themselves where that is another.
[[nodiscard]] std::vector<CallForm> derive_call_forms(const ChatTemplate& chat_template, const TemplateTokens& tokens);

}  // namespace ebb
