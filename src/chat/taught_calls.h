// TaughtCalls: the form in which a model of this chat template writes calls, tried out on what the template itself writes.
//
// A form is one of the list (calls/call_format.h) or derived (derive_call_form.h). It is taken if calls that the template writes read back as
// they were, whole and byte by byte: text with quotes, line breaks and the form's own marks, numbers, lists, objects, no arguments, several
// calls, behind text and by themselves.
//
// Thread rule: find() takes some hundred renderings, which have one allowance together; then immutable.
#pragma once

#include <memory>

#include "chat/calls/form_calls.h"
#include "chat/chat_request.h"

namespace ebb {

// Whether what the template writes of calls reads back; false where it writes none.
[[nodiscard]] bool reads_back(const ChatTemplate& chat_template, const TemplateTokens& tokens,
                              const CallFormat& format);

class TaughtCalls {
 public:
  [[nodiscard]] static TaughtCalls find(const ChatTemplate& chat_template, const TemplateTokens& tokens);

  // Why nothing is known of how this template writes calls, where that took too many steps to find out; else empty.
  [[nodiscard]] const std::string& doubt() const { return doubt_; }
  // What is read. Where the template teaches nothing that is, as Hermes writes calls. Lives as long as this.
  [[nodiscard]] const CallFormat& format() const { return derived_ ? *derived_ : *format_; }
  // Does the template itself tell of tools, and how to call them in the form that is read?
  [[nodiscard]] bool shows_tools() const { return shows_tools_; }
  // Makes the request one of which the template shows all: tools in words, and calls of the history in the form that is read, where it would
  // show none or another.
  void prepare(ChatRequest& request) const;

 private:
  void find_format(const ChatTemplate& chat_template, const TemplateTokens& tokens);

  const CallFormat* format_ = nullptr;
  std::unique_ptr<const FormCalls> derived_;
  bool shows_tools_ = false;
  bool writes_calls_ = false;
  // The template raises where there are none.
  bool needs_tools_ = false;
  std::string doubt_;
};

}  // namespace ebb
