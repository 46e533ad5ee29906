// Message mending: messages in other words, for templates that refuse or lose what was said.
//
// Every mending keeps all text and its order. What can be wrong is known by family; whether it is wrong is found out by
// rendering. Thread rule: values, and functions of their arguments.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

namespace ebb {

class CallFormat;

struct SourcedMessage {
  nlohmann::ordered_json message;
  // Its index in the request; the first one's, where several were joined; none: no message of the request says it.
  std::optional<std::size_t> source;
};
using SourcedMessages = std::vector<SourcedMessage>;

enum class Mending : unsigned {
  kArgumentsAsText = 1,     // the arguments of calls as JSON text, not as objects
  kSplitCalls = 2,          // one message for each call
  kJoinSystem = 4,          // system text at the head of the first user message
  kJoinNeighbours = 8,      // neighbours of one role in one message
  kCallsAsText = 16,        // calls written into the content
  kContentAsNone = 32,      // null instead of no text beside calls
  kResultsAsUser = 64,      // what tools return said by the user
  kOneSystem = 128,         // system text at the front in one message, later system text said by the user
  kCallsApart = 256,        // what is said beside calls in a message of its own, in front of them
  kShortIds = 512,          // ids of calls in nine letters and digits
  kIntoResult = 1024,       // what the user says behind a result at the result's end
  kNoEmpty = 2048,          // without messages of the assistant that say nothing
  kClosedArguments = 4096,  // what is whole of arguments that are no JSON, as an object
};

// Which mendings could change these messages and are tried where a template raises, as bits of Mending. Others are found to be needed
// (chat/template_losses.h).
[[nodiscard]] unsigned applicable_mendings(const SourcedMessages& messages);
// Those without which arguments that broke off, or were never JSON, stop a template that wants objects.
[[nodiscard]] unsigned mendings_of_broken(const SourcedMessages& messages);
// `mendings` is a set of bits. Calls in the content are written as `calls` has them.
[[nodiscard]] SourcedMessages mend(SourcedMessages messages, unsigned mendings, const CallFormat& calls);

}  // namespace ebb
