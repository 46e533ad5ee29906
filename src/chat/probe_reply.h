// Probe replies: what a chat template writes of a reply in the history, for whoever wants to know how it would have been written.
//
// Thread rule: immutable; template and tokens must outlive it.
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

class ReplyProber {
 public:
  ReplyProber(const ChatTemplate& chat_template, const TemplateTokens& tokens);

  // What the assistant would have written: the reply without what begins and ends its turn. Nothing: the template refuses the messages, or does
  // not show what is said.
  [[nodiscard]] std::optional<std::string> render(const ProbeReply& reply) const;
  // What ends its turn, without white space around it.
  [[nodiscard]] std::string_view turn_end() const;

 private:
  // What stands behind the user's message.
  [[nodiscard]] std::optional<std::string> render_turn(const ProbeReply& reply) const;

  const ChatTemplate& chat_template_;
  const TemplateTokens& tokens_;
  // Around what is said, in a turn without calls; nothing: it is not shown.
  struct Around {
    std::string begin;
    std::string end;
  };
  std::optional<Around> around_;
};

// The length of what both begin with, up to the end of a mark, a line or a word.
[[nodiscard]] std::size_t n_common_beginning(std::string_view one, std::string_view other);

}  // namespace ebb
