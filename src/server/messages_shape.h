// The shape of Anthropic's Messages: blocks of content, and events that open, fill and close them. See server/reply_shape.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "server/context_edits.h"
#include "server/reply_shape.h"

namespace ebb {

struct MessagesShapeOptions {
  ReplyHead head;
  // Of the prompt's first tokens, how many end with what cache_control marks last; 0: nothing is marked.
  std::int32_t n_marked_tokens = 0;
  // What the reply may have at most; -1: no more than fits.
  std::int32_t max_tokens = -1;
  // Blocks of thinking come without their text.
  bool hides_thinking = false;
  // What was cleared of the prompt; none: it was not asked for.
  std::optional<ClearedContext> cleared = std::nullopt;
};
std::unique_ptr<ReplyShape> make_messages_shape(MessagesShapeOptions options);

}  // namespace ebb
