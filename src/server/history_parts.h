// History parts: a chat's prompt in parts, one for each message: who said it, what its blocks are called, and how firmly
// they are held.
//
// Names are "system", "user1", "assistant2", "tool3:read" (the message's place among those that the client sent, a tool's
// name), unless the message gives one. Thread rule: a function of its arguments.
#pragma once

#include <vector>

#include "server/chat_plan.h"

namespace ebb {

// `messages` as the client sent them; their member "ebb" may say {"name", "pin", "priority"}. kInvalidArgument names the
// field, also for pins that hold more than half of what a request at work can have hot at least.
Result<std::vector<HistoryPart>> history_parts(const ApiState& state, const ChatPlan& plan, const Json& messages);

}  // namespace ebb
