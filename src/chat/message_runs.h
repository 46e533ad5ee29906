// Message runs: which tokens of a rendered prompt came from which message.
//
// A message's run goes from where the one before it ended its turn to the end of its own, the template's words around it
// included. It knows no roles and no names. Borders are those of tokens, and where a vocabulary drops white space they may
// be off by it: good for names, pins and counters, not for cutting text.
// Thread rule: a function of its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/span.h"
#include "chat/chat_prompt.h"
#include "text/vocabulary.h"

namespace ebb {

struct MessageRun {
  // None: what the template says before the first message.
  std::optional<std::size_t> message;
  std::int32_t n_tokens = 0;

  friend bool operator==(const MessageRun&, const MessageRun&) = default;
};

// In order, none empty, together all of `tokens`, which are tokenize_prompt() of `prompt`.
[[nodiscard]] std::vector<MessageRun> find_message_runs(const Vocabulary& vocabulary, const ChatPrompt& prompt,
                                                        std::span<const Token> tokens);

// A text that a message holds.
struct MessageText {
  std::size_t message = 0;
  std::string_view text;
};

// Of each, the tokens that lie in it wholly, by their places in `tokens`; none where the prompt does not hold the text as it is, or as JSON
// writes it, white space around it aside. Of several of one message each is looked for behind the one before.
[[nodiscard]] std::vector<Span> find_texts(const Vocabulary& vocabulary, const ChatPrompt& prompt,
                                           std::span<const Token> tokens, std::span<const MessageText> texts);

}  // namespace ebb
