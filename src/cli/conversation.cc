#include "cli/conversation.h"

namespace ebb {

Conversation::Conversation(const Vocabulary& vocabulary, std::string_view system) : vocabulary_(&vocabulary) {
  if (!system.empty()) messages_.push_back({.role = "system", .content = std::string(system)});
}

Result<std::vector<Token>> Conversation::ask(std::string_view user_text) {
  messages_.push_back({.role = "user", .content = std::string(user_text)});
  const Result<std::string> added = text_to_add();
  if (!added.ok()) {
    messages_.pop_back();
    return added.status();
  }
  Result<std::vector<Token>> tokens =
      vocabulary_->tokenize(*added, {.add_bos = session_text_.empty(), .parse_special = true});
  if (tokens.ok()) {
    session_text_ += *added;
  } else {
    messages_.pop_back();
  }
  return tokens;
}

Result<std::string> Conversation::text_to_add() const {
  EBB_ASSIGN_OR_RETURN(std::string all, vocabulary_->render_chat(messages_, true));
  if (all.starts_with(session_text_)) return all.substr(session_text_.size());
  // The template writes the last reply in other words than the model did (trimmed, say, or cut at a stop string): what
  // the session holds stays, and the template goes on behind that reply.
  const std::span<const ChatMessage> earlier = std::span(messages_).first(messages_.size() - 1);
  EBB_ASSIGN_OR_RETURN(const std::string before, vocabulary_->render_chat(earlier, false));
  if (!all.starts_with(before)) {
    return error(Code::kUnsupported, "this model's chat template rewrites earlier messages; start over with /reset");
  }
  std::string end_of_reply;
  if (const auto end = vocabulary_->eot() ? vocabulary_->eot() : vocabulary_->eos(); end && !reply_has_ended_) {
    EBB_ASSIGN_OR_RETURN(end_of_reply, vocabulary_->piece(*end, SpecialTokens::kShow));
  }
  return end_of_reply + all.substr(before.size());
}

Status Conversation::answer(std::span<const Token> tokens, std::string_view text) {
  for (const Token token : tokens) {
    EBB_ASSIGN_OR_RETURN(const std::string piece, vocabulary_->piece(token, SpecialTokens::kShow));
    session_text_ += piece;
  }
  reply_has_ended_ = !tokens.empty() && vocabulary_->is_end_of_generation(tokens.back());
  messages_.push_back({.role = "assistant", .content = std::string(text)});
  return {};
}

}  // namespace ebb
