// Conversation: the messages of a chat, and the tokens that each new one puts behind what a session holds.
//
// The template is rendered anew each turn, and only what it says beyond the session's own tokens is tokenized: the
// session's K/V stays as it is, whatever the model's tokens of its reply were. What people write never becomes a control
// token. It knows no engine.
// Thread rule: one thread at a time.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "chat/model_template.h"
#include "text/vocabulary.h"

namespace ebb {

class Conversation {
 public:
  // The vocabulary must outlive it. `system` may be empty.
  Conversation(const Vocabulary& vocabulary, std::string_view system);

  // The tokens that end with the assistant's turn to speak. kUnsupported when the model has no template that works;
  // the conversation is then as before.
  Result<std::vector<Token>> ask(std::string_view user_text);
  // What the assistant said: its tokens (the one that ended the reply included), and the text that was shown of them.
  Status answer(std::span<const Token> tokens, std::string_view text);

  [[nodiscard]] std::span<const ChatMessage> messages() const { return messages_; }

 private:
  [[nodiscard]] Result<ChatPrompt> prompt_to_add() const;
  [[nodiscard]] std::string end_of_last_reply(const std::string& rendered) const;

  const Vocabulary* vocabulary_;
  std::vector<ChatMessage> messages_;
  // What the session holds, as the template writes it.
  std::string session_text_;
  // The text of the token that ended the last reply; empty when it was cut short.
  std::string last_end_token_;
};

}  // namespace ebb
