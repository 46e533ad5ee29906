// Probe replies: what a chat template writes of a reply in the history, for whoever wants to know how it would have been written.
//
// Thread rule: functions of their arguments.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_request.h"

namespace ebb {

// A call as probes make it; arguments are an object.
struct ProbeCall {
  std::string name;
  std::string id;
  nlohmann::ordered_json arguments;
};

// A reply as a template writes it into the history.
struct ProbeReply {
  std::string content;
  std::vector<ProbeCall> calls;
};

// What the assistant would have written: the reply without what begins and ends its turn. Nothing: the template refuses the messages, or does
// not show the calls.
[[nodiscard]] std::optional<std::string> render_reply(const ChatTemplate& chat_template, const TemplateTokens& tokens,
                                                      const ProbeReply& reply);

// What ends a turn of the assistant, without white space around it.
[[nodiscard]] std::optional<std::string> render_turn_end(const ChatTemplate& chat_template,
                                                         const TemplateTokens& tokens);

// The length of what both begin with, up to the end of a mark, a line or a word.
[[nodiscard]] std::size_t n_common_beginning(std::string_view one, std::string_view other);

}  // namespace ebb
