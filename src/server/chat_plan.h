// ChatPlan: what a chat request asks for, ready to run: its prompt, how the answer is generated, and how it is read.
//
// What can be refused is refused here, but for what the engine does not take (start_answer). It does not know how answers
// are written. Thread rule: values.
#pragma once

#include <string>
#include <vector>

#include "base/span.h"
#include "chat/chat_prompt.h"
#include "chat/reply_parser.h"
#include "server/api_state.h"
#include "server/generation_request.h"
#include "server/tool_fields.h"

namespace ebb {

struct ChatPlan {
  ChatRequest request;
  ChatPrompt prompt;
  std::vector<Token> tokens;
  // Of them, what the client no longer wants in sight; ascending.
  std::vector<Span> cleared = {};
  // How each choice is made; without what cold blocks are recalled for.
  GenerationRequest generation;
  ReplyRules rules;
  std::vector<std::string> warnings;
};

// kInvalidArgument and kUnsupported name the field.
Result<ChatPlan> plan_chat(const ApiState& state, const Json& body);

// The prompt alone, and the request as the template saw it.
struct ChatRendering {
  ChatRequest request;
  ChatPrompt prompt;
  ToolFields tools;
  // The source text of the template that was used.
  const std::string* template_source = nullptr;
  // How calls are written in this prompt.
  const CallFormat* calls = nullptr;
};
Result<ChatRendering> render_chat(const ApiState& state, const Json& body);

}  // namespace ebb
