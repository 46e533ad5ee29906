// Tool text: what templates show to the model, and tools described in words for those that show none.
//
// Thread rule: functions of their arguments.
#pragma once

#include "chat/chat_request.h"

namespace ebb {

// Found out by rendering a request with a tool.
[[nodiscard]] bool shows_tools(const ChatTemplate& chat_template, const TemplateTokens& tokens);

// Found out by rendering a call that the assistant made, and what a message of the system says.
[[nodiscard]] bool shows_calls(const ChatTemplate& chat_template, const TemplateTokens& tokens);
[[nodiscard]] bool shows_system_text(const ChatTemplate& chat_template, const TemplateTokens& tokens);

// Moves the tools into the system message, with how to call them, as the format writes it.
void describe_tools(ChatRequest& request, const CallFormat& format);

}  // namespace ebb
