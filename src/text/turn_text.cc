#include "text/turn_text.h"

#include <optional>
#include <string>

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
  EBB_ASSIGN_OR_RETURN(std::string text, vocabulary.render_chat(messages, true));
  if (before != Before::kNothing) {
    const std::size_t at = text.find(kReply);
    if (at == std::string::npos) {
      return error(Code::kUnsupported, "the model's chat template drops earlier replies; choose another model");
    }
    text = text.substr(at + kReply.size());
  }
  if (before == Before::kEndedReply) {
    // The token that ended the reply is the session's already.
    for (const std::optional<Token> end : {vocabulary.eot(), vocabulary.eos()}) {
      if (!end) continue;
      EBB_ASSIGN_OR_RETURN(const std::string piece, vocabulary.piece(*end, SpecialTokens::kShow));
      if (!piece.empty() && text.starts_with(piece)) {
        text = text.substr(piece.size());
        break;
      }
    }
  }
  return vocabulary.tokenize(text, {.add_bos = before == Before::kNothing, .parse_special = true});
}

}  // namespace ebb
