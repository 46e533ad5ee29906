// Model template: which chat template speaks for a model, and plain messages rendered with it.
//
// For what the command line and the library say to a model: role and text. Requests of the chat API, with tools and all,
// are chat/chat_request.h's.
// Thread rule: functions of their arguments.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "chat/chat_prompt.h"
#include "text/vocabulary.h"

namespace ebb {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
};

// The Jinja source for requests with or without tools: the file's template for tools where it has one, else its template,
// else ChatML.
[[nodiscard]] std::string template_source(const Vocabulary& vocabulary, bool has_tools);

// How a token of the vocabulary is written ("<s>"); empty when there is none.
[[nodiscard]] std::string bos_text(const Vocabulary& vocabulary);
[[nodiscard]] std::string eos_text(const Vocabulary& vocabulary);

// kUnsupported when the file has no template, or one that cannot be compiled; kInvalidArgument when the template refuses the
// messages.
Result<ChatPrompt> render_messages(const Vocabulary& vocabulary, std::span<const ChatMessage> messages,
                                   bool add_generation_prompt);

}  // namespace ebb
