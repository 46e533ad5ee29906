// Prompt thinking: whether a rendered prompt ends inside thinking, so that the answer goes on there.
//
// Only the template's own last words count, and those of an answer that the client began; what people say of the marks does
// not. Thread rule: a function of its arguments.
#pragma once

#include <cstdint>

#include "chat/chat_prompt.h"
#include "chat/reply_parser.h"

namespace ebb {

enum class PromptThinking : std::uint8_t {
  kNotBegun,  // the answer may begin with it
  kOpen,
  kOver,  // it was closed before the answer began
};

// `continues_answer`: the prompt's last piece is the beginning of the answer.
[[nodiscard]] PromptThinking find_prompt_thinking(const ChatPrompt& prompt, const ThinkTags& tags,
                                                  bool continues_answer);

}  // namespace ebb
