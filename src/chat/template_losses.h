// Template losses: what a chat template leaves out of the prompt without a word, or refuses, found out by rendering small histories.
//
// A template that has no case for a role writes nothing of it, and nobody is told. What is found depends on the template and on what kinds of
// messages there are, not on what they say, so that all turns of a conversation are mended alike.
// Thread rule: functions of their arguments.
#pragma once

#include "chat/chat_template.h"
#include "chat/message_mending.h"

namespace ebb {

// What the template does to calls in the history, found out with a history of two, as bits of Mending: kSplitCalls when it writes only one of
// them, kCallsAsText when it writes none, kContentAsNone when it takes no text for text to write, 0 when all is well or nothing renders.
[[nodiscard]] unsigned mendings_for_lost_calls(const ChatTemplate& chat_template, const TemplateInputs& inputs);

// That and all else that these messages need: kResultsAsUser when it writes no results of tools, kCallsApart when it writes no calls beside text,
// kShortIds when it refuses ids of another shape, kOneSystem when it writes or takes the first system text alone, kJoinSystem when it writes none.
[[nodiscard]] unsigned mendings_for_losses(const ChatTemplate& chat_template, const TemplateInputs& inputs,
                                           const SourcedMessages& messages);

}  // namespace ebb
