#include "chat/tool_text.h"

#include "chat/calls/call_format.h"

namespace ebb {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kWord = "look_into_the_well";

// Whether the prompt of messages that hold kWord holds it too.
bool shows_word(const ChatTemplate& chat_template, const TemplateTokens& tokens, const ChatRequest& request) {
  const Result<ChatPrompt> prompt = render_chat_request(chat_template, request, tokens);
  return prompt.ok() && prompt->text().find(kWord) != std::string::npos;
}

}  // namespace

bool shows_tools(const ChatTemplate& chat_template, const TemplateTokens& tokens) {
  ChatRequest request;
  request.messages.push_back({{"role", "user"}, {"content", "Hello"}});
  const Json parameters = {{"type", "object"},
                           {"properties", {{"depth", {{"type", "integer"}, {"description", "m"}}}}}};
  request.tools = Json::array(
      {{{"type", "function"}, {"function", {{"name", kWord}, {"description", "Looks"}, {"parameters", parameters}}}}});
  return shows_word(chat_template, tokens, request);
}

bool shows_calls(const ChatTemplate& chat_template, const TemplateTokens& tokens) {
  const Json call = {
      {"id", "abcdefghi"}, {"type", "function"}, {"function", {{"name", kWord}, {"arguments", {{"depth", 1}}}}}};
  ChatRequest request;
  request.messages.push_back({{"role", "user"}, {"content", "Hello"}});
  request.messages.push_back({{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}});
  request.messages.push_back({{"role", "tool"}, {"tool_call_id", "abcdefghi"}, {"content", "dark"}});
  return shows_word(chat_template, tokens, request);
}

bool shows_system_text(const ChatTemplate& chat_template, const TemplateTokens& tokens) {
  ChatRequest request;
  request.messages.push_back({{"role", "system"}, {"content", kWord}});
  request.messages.push_back({{"role", "user"}, {"content", "Hello"}});
  return shows_word(chat_template, tokens, request);
}

void describe_tools(ChatRequest& request, const CallFormat& format) {
  std::string text = "You may call these tools:\n";
  for (const Json& tool : request.tools) {
    text += tool["function"].dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  text += "\nTo call one, answer with its name and arguments like this:\n";
  text += format.write({{.name = "...", .arguments = "{...}"}});
  request.tools = nullptr;
  Json& first = request.messages.front();
  if (first["role"] == "system") {
    first["content"] = first["content"].get<std::string>() + "\n\n" + text;
  } else {
    request.messages.insert(request.messages.begin(), Json{{"role", "system"}, {"content", text}});
    ++request.n_put_in_front;
  }
}

}  // namespace ebb
