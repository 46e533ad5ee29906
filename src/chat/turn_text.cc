#include "chat/turn_text.h"

#include <optional>
#include <string>

#include "chat/model_template.h"
#include "chat/prompt_tokens.h"

namespace ebb {

Result<std::vector<Token>> turn_tokens(const Vocabulary& vocabulary, std::string_view message, Before before) {
  // Looked for in what the template makes of it; no template writes it by itself.
  constexpr std::string_view kReply = "Ebbreplyhere";
  std::vector<ChatMessage> messages;
  if (before != Before::kNothing) {
    messages.push_back({.role = "user", .content = "Hello"});
    messages.push_back({.role = "assistant", .content = std::string(kReply)});
  }
  messages.push_back({.role = "user", .content = std::string(message)});
  EBB_ASSIGN_OR_RETURN(ChatPrompt prompt, render_messages(vocabulary, messages, true));
  if (before != Before::kNothing) {
    const std::size_t at = prompt.text().find(kReply);
    if (at == std::string::npos) {
      return error(Code::kUnsupported, "the model's chat template drops earlier replies; choose another model");
    }
    prompt = prompt.behind(at + kReply.size());
  }
  if (before == Before::kEndedReply) {
    // The token that ended the reply is the session's already.
    for (const std::optional<Token> end : {vocabulary.eot(), vocabulary.eos()}) {
      if (!end) continue;
      EBB_ASSIGN_OR_RETURN(const std::string piece, vocabulary.piece(*end, SpecialTokens::kShow));
      if (!piece.empty() && prompt.text().starts_with(piece)) {
        prompt = prompt.behind(piece.size());
        break;
      }
    }
  }
  return tokenize_prompt(vocabulary, prompt, before == Before::kNothing);
}

}  // namespace ebb
