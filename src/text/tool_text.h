// Tool text: tools described in words, for templates that do not show them to the model.
//
// Thread rule: functions of their arguments.
#pragma once

#include "text/chat_request.h"

namespace ebb {

// Found out by rendering a request with a tool.
[[nodiscard]] bool shows_tools(const ChatTemplate& chat_template, const TemplateTokens& tokens);

// Moves the tools into the system message, with how to call them (calls/hermes_calls.cc).
void describe_tools(ChatRequest& request);

}  // namespace ebb
