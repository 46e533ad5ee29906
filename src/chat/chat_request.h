// ChatRequest: the part of an OpenAI-style chat request that becomes the prompt, in the one form that templates
// understand.
//
// Clients say the same in many ways (content as string, null or parts; developer for system; arguments as JSON text),
// and families of templates each understand their own. Reading brings a request to one form; rendering tries that form,
// and where the template raises, mends the messages as its family needs. It knows no tokens, no limits and no other
// field.
// Thread rule: values, and functions of their arguments.
#pragma once

#include <cstddef>
#include <ctime>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "chat/chat_prompt.h"
#include "chat/chat_template.h"

namespace ebb {

class CallFormat;

struct ChatRequest {
  // Each an object with role, content (a string) and, where the client gave them, tool_calls (arguments parsed),
  // tool_call_id, name, reasoning_content.
  std::vector<nlohmann::ordered_json> messages = {};
  // An array, or null when there are none.
  nlohmann::ordered_json tools = nullptr;
  // chat_template_kwargs and what reasoning_effort says.
  nlohmann::ordered_json arguments = nlohmann::ordered_json::object();
  bool add_generation_prompt = true;
  // The last message is the assistant's and unfinished: the prompt ends with its text.
  bool continues_last_message = false;
  // Messages at the front that the client did not send.
  std::size_t n_put_in_front = 0;
  // How calls are written into the text of a message where the template writes none; null: as Hermes does.
  const CallFormat* calls = nullptr;
  // So are all: the template writes them in a form that is not read.
  bool writes_calls = false;
  // Where the template raises at these tools, they are described in words instead.
  bool may_describe_tools = false;
};

// kInvalidArgument names the field, what was expected and what came.
Result<ChatRequest> read_chat_request(const nlohmann::ordered_json& body);

struct TemplateTokens {
  std::string bos = {};
  std::string eos = {};
};
// Where a piece says which message it stood in, that is an index into request.messages. The error is the template's
// first: what it says to the messages as they came.
Result<ChatPrompt> render_chat_request(const ChatTemplate& chat_template, const ChatRequest& request,
                                       const TemplateTokens& tokens, const std::tm& now = local_time());
// Whether the template raises where there are no tools, and takes a list of none.
[[nodiscard]] bool raises_without_tools(const ChatTemplate& chat_template, const TemplateTokens& tokens);

}  // namespace ebb
