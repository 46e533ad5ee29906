// Message mending: messages in other words, for templates that refuse or lose what was said.
//
// Every mending keeps all text and its order. What can be wrong is known by family; whether it is wrong is found out by
// rendering. Thread rule: values, and functions of their arguments.
#pragma once

#include <cstddef>
#include <vector>

#include <nlohmann/json.hpp>

#include "chat/chat_template.h"

namespace ebb {

class CallFormat;

struct SourcedMessage {
  nlohmann::ordered_json message;
  std::size_t source;  // its index in the request; the first one's, where several were joined
};
using SourcedMessages = std::vector<SourcedMessage>;

enum class Mending : unsigned {
  kArgumentsAsText = 1,  // the arguments of calls as JSON text, not as objects
  kSplitCalls = 2,       // one message for each call
  kJoinSystem = 4,       // system text at the head of the first user message
  kJoinNeighbours = 8,   // neighbours of one role in one message
  kCallsAsText = 16,     // calls written into the content
  kContentAsNone = 32,   // null instead of no text beside calls
  kResultsAsUser = 64,   // what tools return said by the user
};

// Which mendings could change these messages: bits of Mending, without kCallsAsText and kContentAsNone.
[[nodiscard]] unsigned applicable_mendings(const SourcedMessages& messages);
// `mendings` is a set of bits. Calls in the content are written as `calls` has them.
[[nodiscard]] SourcedMessages mend(SourcedMessages messages, unsigned mendings, const CallFormat& calls);

// What the template does to calls in the history, found out with a history of two: kSplitCalls when it writes only one of
// them, kCallsAsText when it writes none, kContentAsNone when it takes no text for text to write, 0 when all is well or nothing renders.
[[nodiscard]] unsigned mendings_for_lost_calls(const ChatTemplate& chat_template, const TemplateInputs& inputs);

}  // namespace ebb
