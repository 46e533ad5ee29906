// Chat history: what a chat says, a part for each of its messages: who said it, what its blocks are called, and how firmly
// they are held.
//
// Names are "system", "user1", "assistant2", "tool3:read" (the message's place among those that the client sent, a tool's
// name), unless the message gives one. Thread rule: a function of its arguments.
#pragma once

#include "server/chat_plan.h"

namespace ebb {

// Who speaks in a message of this role.
[[nodiscard]] Source source_of(std::string_view role);

// Takes the plan's tokens. `messages` as the client sent them; their member "ebb" may say {"name", "pin", "priority",
// "cleared"}.
// kInvalidArgument names the field, also for pins that hold more than half of what a request at work can have hot at least.
Result<Prompt> chat_history(const ApiState& state, ChatPlan& plan, const Json& messages);

// Tokens of the prompt up to the end of this many of the client's messages, and what stands before all of them.
[[nodiscard]] std::int32_t tokens_of_first(const ApiState& state, const ChatPlan& plan, std::size_t n_messages);

}  // namespace ebb
