#include "text/tool_text.h"

namespace ebb {

using Json = nlohmann::ordered_json;

bool shows_tools(const ChatTemplate& chat_template, const TemplateTokens& tokens) {
  constexpr std::string_view kName = "look_into_the_well";
  ChatRequest request;
  request.messages.push_back({{"role", "user"}, {"content", "Hello"}});
  const Json parameters = {{"type", "object"},
                           {"properties", {{"depth", {{"type", "integer"}, {"description", "m"}}}}}};
  request.tools = Json::array(
      {{{"type", "function"}, {"function", {{"name", kName}, {"description", "Looks"}, {"parameters", parameters}}}}});
  const Result<ChatPrompt> prompt = render_chat_request(chat_template, request, tokens);
  return prompt.ok() && prompt->text().find(kName) != std::string::npos;
}

void describe_tools(ChatRequest& request) {
  std::string text = "You may call these tools:\n";
  for (const Json& tool : request.tools) {
    text += tool["function"].dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  text +=
      "\nTo call one, answer with its name and arguments like this:\n"
      "<tool_call>\n{\"name\": \"...\", \"arguments\": {...}}\n</tool_call>";
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
