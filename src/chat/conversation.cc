#include "chat/conversation.h"

#include <algorithm>

#include "chat/prompt_tokens.h"

namespace ebb {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

Conversation::Conversation(const Vocabulary& vocabulary, std::string_view system) : vocabulary_(&vocabulary) {
  if (!system.empty()) messages_.push_back({.role = "system", .content = std::string(system)});
}

Result<std::vector<Token>> Conversation::ask(std::string_view user_text) {
  messages_.push_back({.role = "user", .content = std::string(user_text)});
  const Result<ChatPrompt> added = prompt_to_add();
  if (!added.ok()) {
    messages_.pop_back();
    return added.status();
  }
  Result<std::vector<Token>> tokens = tokenize_prompt(*vocabulary_, *added, session_text_.empty());
  if (tokens.ok()) {
    session_text_ += added->text();
  } else {
    messages_.pop_back();
  }
  return tokens;
}

Result<ChatPrompt> Conversation::prompt_to_add() const {
  EBB_ASSIGN_OR_RETURN(const ChatPrompt prompt, render_messages(*vocabulary_, messages_, true));
  const std::string all = prompt.text();
  if (all.starts_with(session_text_)) return prompt.behind(session_text_.size());
  // The template writes the last reply in other words than the model did (trimmed, say, or cut at a stop string): what
  // the session holds stays, and the template goes on behind that reply.
  const std::span<const ChatMessage> earlier = std::span(messages_).first(messages_.size() - 1);
  EBB_ASSIGN_OR_RETURN(const ChatPrompt before, render_messages(*vocabulary_, earlier, false));
  const std::string before_text = before.text();
  if (!all.starts_with(before_text)) {
    return error(Code::kUnsupported, "this model's chat template rewrites earlier messages; start over with /reset");
  }
  ChatPrompt added = prompt.behind(before_text.size());
  added.pieces.insert(added.pieces.begin(), {.text = end_of_last_reply(before_text)});
  return added;
}

// What the template writes behind the last reply, without what the reply's own last token said of it.
std::string Conversation::end_of_last_reply(const std::string& rendered) const {
  if (messages_.size() < 2) return {};
  std::string_view reply = messages_[messages_.size() - 2].content;
  while (!reply.empty() && is_space(reply.front())) reply.remove_prefix(1);
  while (!reply.empty() && is_space(reply.back())) reply.remove_suffix(1);
  const std::size_t at = rendered.rfind(reply);
  if (reply.empty() || at == std::string::npos) return {};
  std::string end = rendered.substr(at + reply.size());
  end.erase(0, std::min(end.find_first_not_of(" \t\r\n"), end.size()));
  if (!last_end_token_.empty() && end.starts_with(last_end_token_)) end.erase(0, last_end_token_.size());
  return end;
}

Status Conversation::answer(std::span<const Token> tokens, std::string_view text) {
  last_end_token_.clear();
  for (const Token token : tokens) {
    EBB_ASSIGN_OR_RETURN(const std::string piece, vocabulary_->piece(token, SpecialTokens::kShow));
    session_text_ += piece;
    if (vocabulary_->is_end_of_generation(token)) last_end_token_ = piece;
  }
  messages_.push_back({.role = "assistant", .content = std::string(text)});
  return {};
}

}  // namespace ebb
