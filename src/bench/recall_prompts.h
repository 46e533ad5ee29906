// How recall tasks become tokens for a model: in its chat template, or as plain text where it has none.
//
// It computes nothing. Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/recall_tasks.h"
#include "chat/turn_text.h"

namespace ebb {

// Whether messages are told in marks of the model's, or as plain text.
[[nodiscard]] bool has_chat_template(const Vocabulary& vocabulary);

// All messages and the replies to them; `Before::kEndedReply` or kCutReply is how that ends.
struct RecallContext {
  std::vector<Token> tokens;
  Before ends = Before::kNothing;
};
Result<RecallContext> recall_context(const Vocabulary& vocabulary, const RecallTask& task);
// One message of it: what a bench computes that reads turn by turn.
Result<RecallContext> recall_message(const Vocabulary& vocabulary, const RecallMessage& message, Before before);
// What a reply is generated behind.
Result<std::vector<Token>> recall_question(const Vocabulary& vocabulary, std::string_view question, Before before);
// What ends a reply besides the model's own token: a line break, where there is no template.
[[nodiscard]] std::vector<std::string> recall_stops(const Vocabulary& vocabulary);

}  // namespace ebb
