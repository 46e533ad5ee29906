// Prompt tokens: a rendered prompt in a vocabulary's tokens, where only the template may name control tokens.
//
// Text that came from the request is never read as a control token, neither by itself nor together with what the template
// wrote beside it. When it does not look like one anywhere, the tokens are those of the whole text read at once, as the
// model was trained on; a border between template and message is then no border between tokens.
// Thread rule: a function of its arguments.
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "chat/chat_prompt.h"
#include "text/vocabulary.h"

namespace ebb {

// add_bos: the prompt begins a text, so that a vocabulary that wants a beginning-of-text token gets one; one that the
// template has written too is dropped.
Result<std::vector<Token>> tokenize_prompt(const Vocabulary& vocabulary, const ChatPrompt& prompt, bool add_bos);

}  // namespace ebb
