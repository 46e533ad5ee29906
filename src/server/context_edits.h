// Context edits: what a client of Anthropic's Messages no longer wants in sight (context_management), found in a prompt.
//
//   clear_tool_uses_20250919   results of tools, the oldest first, and what the tools were called with where it is asked for
//   clear_thinking_20251015    thinking of the assistant's older turns
//
// Nothing of the prompt is deleted: what is cleared leaves the KV cache by whole blocks, stays in the cold store, and comes back where
// a question asks for it. So all that stands before and behind it stays valid. Tokens are counted by the blocks that leave.
//
// Thread rule: functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/span.h"
#include "chat/chat_prompt.h"
#include "chat/chat_request.h"
#include "json/json_fields.h"
#include "text/vocabulary.h"

namespace ebb {

struct ContextEdit {
  enum class Kind : std::uint8_t { kToolUses, kThinking };
  enum class Unit : std::uint8_t { kInputTokens, kToolUses };

  Kind kind = Kind::kToolUses;
  // It is applied where the prompt has more of these, and at least so many tokens leave by it.
  Unit trigger_unit = Unit::kInputTokens;
  std::int64_t trigger = 0;
  std::int64_t clear_at_least = 0;
  // The last tool uses, or turns with thinking, that stay; none: all.
  std::optional<std::int64_t> n_kept = 0;
  std::vector<std::string> excluded_tools = {};
  // Of these tools what they were called with is cleared too; none: of all.
  std::optional<std::vector<std::string>> tools_of_inputs = std::vector<std::string>();
};

// In their order; none: the request has no context_management. What has no effect is told.
[[nodiscard]] std::optional<std::vector<ContextEdit>> read_context_edits(JsonFields& body,
                                                                         std::vector<std::string>& warnings);

struct AppliedEdit {
  ContextEdit::Kind kind = ContextEdit::Kind::kToolUses;
  std::int32_t n_items = 0;  // tool uses, or turns
  std::int32_t n_tokens = 0;
};

struct ClearedContext {
  std::vector<Span> spans = {};  // of the prompt's tokens, ascending
  std::vector<AppliedEdit> applied = {};
  // Texts that were to leave and stay, since they fill no block.
  std::int32_t n_too_small = 0;
  std::int32_t block_size = 1;

  [[nodiscard]] std::int32_t n_tokens() const {
    std::int32_t n = 0;
    for (const AppliedEdit& edit : applied) n += edit.n_tokens;
    return n;
  }
  // Of the first tokens of the prompt, those that leave: whole blocks.
  [[nodiscard]] std::int32_t n_tokens_of_first(std::int32_t n) const;
};

// `tokens` are the prompt's.
[[nodiscard]] ClearedContext clear_context(const std::vector<ContextEdit>& edits, const ChatRequest& request,
                                           const ChatPrompt& prompt, const std::vector<Token>& tokens,
                                           const Vocabulary& vocabulary, std::int32_t block_size);

// A warning of what is too small, which there is.
[[nodiscard]] std::string too_small_to_clear(const ClearedContext& cleared);

// {"applied_edits": [...]}
[[nodiscard]] Json applied_edits_json(const ClearedContext& cleared);

}  // namespace ebb
