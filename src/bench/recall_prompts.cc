#include "bench/recall_prompts.h"

namespace ebb {
namespace {

Status append_text(const Vocabulary& vocabulary, std::string_view text, bool is_first, std::vector<Token>& tokens) {
  EBB_ASSIGN_OR_RETURN(const std::vector<Token> more, vocabulary.tokenize(text, {.add_bos = is_first}));
  tokens.insert(tokens.end(), more.begin(), more.end());
  return {};
}

}  // namespace

bool has_chat_template(const Vocabulary& vocabulary) {
  return vocabulary.chat_template() && !vocabulary.chat_template()->empty();
}

Result<RecallContext> recall_message(const Vocabulary& vocabulary, const RecallMessage& message, Before before) {
  RecallContext context{.ends = Before::kCutReply};
  if (!has_chat_template(vocabulary)) {
    const std::string text = message.text + "\n" + message.reply + "\n\n";
    EBB_RETURN_IF_ERROR(append_text(vocabulary, text, before == Before::kNothing, context.tokens));
    return context;
  }
  EBB_ASSIGN_OR_RETURN(context.tokens, turn_tokens(vocabulary, message.text, before));
  EBB_RETURN_IF_ERROR(append_text(vocabulary, message.reply, false, context.tokens));
  const std::optional<Token> end = vocabulary.eot() ? vocabulary.eot() : vocabulary.eos();
  if (end) {
    context.tokens.push_back(*end);
    context.ends = Before::kEndedReply;
  }
  return context;
}

Result<RecallContext> recall_context(const Vocabulary& vocabulary, const RecallTask& task) {
  RecallContext context;
  for (const RecallMessage& message : task.messages) {
    EBB_ASSIGN_OR_RETURN(const RecallContext more, recall_message(vocabulary, message, context.ends));
    context.tokens.insert(context.tokens.end(), more.tokens.begin(), more.tokens.end());
    context.ends = more.ends;
  }
  return context;
}

Result<std::vector<Token>> recall_question(const Vocabulary& vocabulary, std::string_view question, Before before) {
  if (has_chat_template(vocabulary)) return turn_tokens(vocabulary, question, before);
  return vocabulary.tokenize("\nQuestion: " + std::string(question) + "\nAnswer:", {.add_bos = false});
}

std::vector<std::string> recall_stops(const Vocabulary& vocabulary) {
  if (has_chat_template(vocabulary)) return {};
  return {"\n"};
}

}  // namespace ebb
