// ChatTemplate: the Jinja text of a model that turns messages into its prompt.
//
// Compiled once, rendered many times. What it makes is what Jinja2 makes of the template with the settings that Hugging
// Face's apply_chat_template uses, in pieces that say which characters came from the request, so that those are never read
// as control tokens (chat/prompt_tokens.h). It knows no vocabulary, no families and no mending of messages
// (chat/chat_request.h). No template and no message crashes it, runs for ever or fills the memory.
//
// Thread rule: immutable; render may be called from any thread. It needs half a megabyte of stack.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "chat/chat_prompt.h"

namespace ebb {

namespace jinja {
struct Program;
}

// The machine's local time, which strftime_now prints.
[[nodiscard]] std::tm local_time();

struct TemplateInputs {
  // An array of objects with at least a role.
  nlohmann::ordered_json messages;
  // Null when there are none.
  nlohmann::ordered_json tools = nullptr;
  bool add_generation_prompt = true;
  std::string bos_token = {};
  std::string eos_token = {};
  // An object (or null): further variables of the template. They go before bos_token and eos_token.
  nlohmann::ordered_json arguments = nullptr;
  std::tm now = local_time();
};

// Steps that several renderings may take together, beside what each may.
struct RenderAllowance {
  std::size_t n_steps = 0;  // left
  // A rendering ended for want of them.
  bool is_spent = false;
};

class ChatTemplate {
 public:
  // kInvalidArgument names the line, what was expected and what stands there.
  [[nodiscard]] static Result<ChatTemplate> compile(std::string source);

  // kInvalidArgument: the template refuses the messages (its raise_exception's text is in the message) or meets something
  // that Python would raise for; kOutOfBudget: it takes too many steps or too much memory. Both name the line.
  [[nodiscard]] Result<ChatPrompt> render(const TemplateInputs& inputs) const;

  // The same template, whose renderings share what is allowed: for one thread at a time.
  [[nodiscard]] ChatTemplate within(std::shared_ptr<RenderAllowance> allowance) const;

  [[nodiscard]] const std::string& source() const { return source_; }

 private:
  ChatTemplate(std::string source, std::shared_ptr<const jinja::Program> program)
      : source_(std::move(source)), program_(std::move(program)) {}

  std::string source_;
  std::shared_ptr<const jinja::Program> program_;
  // Null: each rendering has only its own limit.
  std::shared_ptr<RenderAllowance> allowance_;
};

// Messages between <|im_start|>role and <|im_end|>: for models without a template of their own.
[[nodiscard]] std::string_view chatml_template();

}  // namespace ebb
