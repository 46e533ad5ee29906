// Chat requests as texts: for callers that hold a request's bytes and want its prompt, and that know no JSON.
//
// Thread rule: functions of their arguments.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "chat/chat_prompt.h"
#include "chat/prompt_tokens.h"
#include "text/vocabulary.h"

namespace ebb {

// What turns a request into a prompt: a template, or else the vocabulary's (chat/model_template.h). One of the two is there.
struct ChatPromptSource {
  std::optional<std::string> chat_template = std::nullopt;
  const Vocabulary* vocabulary = nullptr;
};

// The body of a chat request. kInvalidArgument when it is not JSON, a field is wrong or the template refuses it.
Result<ChatPrompt> prompt_of_request_text(std::string_view body, const ChatPromptSource& source);

// The text as a JSON string, quotes included; bytes that are not UTF-8 as U+FFFD.
[[nodiscard]] std::string quoted_text(std::string_view text);

}  // namespace ebb
