// Requests of Anthropic's Messages API, said as chat requests: the rest of the way is chat's (server/chat_plan.h).
//
//   system                       one message of the system, blocks joined by line breaks
//   a user's tool_result blocks  a message of the role tool each; text around them stays where it stood
//   an assistant's blocks        one message: thinking as reasoning_content, text as content, tool_use as tool_calls
//   thinking, output_config      what templates know as enable_thinking, reasoning_effort; a budget of thinking tokens
//
// What a model of text cannot read (images, PDFs) is refused by name; tools that only Anthropic's servers have are left out,
// and the answer says so.
//
// Thread rule: a function of its argument.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "json/json_fields.h"
#include "server/context_edits.h"

namespace ebb {

struct MessagesRequest {
  // The request as a body of /v1/chat/completions.
  Json chat = Json::object();
  // How many of its first messages end with what cache_control marks last; none: nothing is marked. A mark inside a message
  // counts for all of it, one of a tool for the system's text too, beside which templates write tools.
  std::optional<std::size_t> n_marked = std::nullopt;
  // What is to leave sight; none: not asked for.
  std::optional<std::vector<ContextEdit>> edits = std::nullopt;
  // Thinking is given without its text (thinking.display).
  bool hides_thinking = false;
  std::vector<std::string> warnings = {};
};

// kInvalidArgument names the field.
Result<MessagesRequest> read_messages_request(const Json& body);

}  // namespace ebb
