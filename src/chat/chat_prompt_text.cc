#include "chat/chat_prompt_text.h"

#include <algorithm>

#include "chat/chat_request.h"
#include "chat/chat_template.h"
#include "chat/model_template.h"
#include "chat/taught_calls.h"
#include "json/parse_json.h"

namespace ebb {

Result<ChatPrompt> prompt_of_request_text(std::string_view body, const ChatPromptSource& source) {
  EBB_CHECK(source.chat_template || source.vocabulary != nullptr, "a prompt needs a template");
  const auto json = parse_json(body);
  if (!json.ok()) {
    return error(Code::kInvalidArgument,
                 "the request: {}; it should look like {{\"messages\": [{{\"role\": \"user\", \"content\": "
                 "\"Hello\"}}]}}",
                 json.status().message());
  }
  EBB_ASSIGN_OR_RETURN(ChatRequest request, read_chat_request(*json));
  std::string text =
      source.chat_template ? *source.chat_template : template_source(*source.vocabulary, !request.tools.is_null());
  EBB_ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::compile(std::move(text)));
  TemplateTokens tokens;
  if (source.vocabulary != nullptr) tokens = {bos_text(*source.vocabulary), eos_text(*source.vocabulary)};
  // Some hundred renderings, which only tools and calls need.
  std::optional<TaughtCalls> taught;
  const auto has_calls = [](const auto& message) { return message.contains("tool_calls"); };
  if (!request.tools.is_null() || std::ranges::any_of(request.messages, has_calls)) {
    taught = TaughtCalls::find(chat_template, tokens);
    taught->prepare(request);
  }
  return render_chat_request(chat_template, request, tokens);
}

std::string quoted_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ebb
