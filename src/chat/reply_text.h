// Replies as texts: for callers that hold a reply's bytes and want what a client would get of it, and that know no JSON.
//
// Thread rule: functions of their arguments.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "chat/chat_prompt_text.h"

namespace ebb {

struct ReplyTextRules {
  // Whose template says how thinking and calls are written.
  ChatPromptSource source;
  // A JSON array of tools as a request has it, or a request; empty: any name may be called, values in tags are text.
  std::string tools;
  // The prompt ended inside thinking.
  bool thinking_open = false;
};

// The message that a client gets, as JSON in lines. kInvalidArgument for a template or tools that are none.
[[nodiscard]] Result<std::string> message_of_reply_text(std::string_view text, const ReplyTextRules& rules);

// The same as it comes in a stream, of a text in pieces of so many bytes (at least 1, characters whole): one delta a line.
[[nodiscard]] Result<std::string> deltas_of_reply_text(std::string_view text, const ReplyTextRules& rules,
                                                       std::size_t n_bytes);

}  // namespace ebb
