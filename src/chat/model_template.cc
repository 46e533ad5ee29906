#include "chat/model_template.h"

#include <optional>

#include "chat/chat_template.h"

namespace ebb {
namespace {

std::string text_of(const Vocabulary& vocabulary, std::optional<Token> token) {
  if (!token) return {};
  const Result<std::string> text = vocabulary.piece(*token, SpecialTokens::kShow);
  return text.ok() ? *text : std::string();
}

}  // namespace

std::string template_source(const Vocabulary& vocabulary, bool has_tools) {
  if (has_tools && vocabulary.tool_use_template()) return *vocabulary.tool_use_template();
  return vocabulary.chat_template().value_or(std::string(chatml_template()));
}

std::string bos_text(const Vocabulary& vocabulary) { return text_of(vocabulary, vocabulary.bos()); }
std::string eos_text(const Vocabulary& vocabulary) { return text_of(vocabulary, vocabulary.eos()); }

Result<ChatPrompt> render_messages(const Vocabulary& vocabulary, std::span<const ChatMessage> messages,
                                   bool add_generation_prompt) {
  if (!vocabulary.chat_template()) {
    return error(Code::kUnsupported, "the model carries no chat template; give it plain text instead of messages");
  }
  const Result<ChatTemplate> chat_template = ChatTemplate::compile(*vocabulary.chat_template());
  if (!chat_template.ok()) {
    return error(Code::kUnsupported, "the model's template is not understood ({}); give it plain text instead",
                 chat_template.status().message());
  }
  TemplateInputs inputs{.messages = nlohmann::ordered_json::array(),
                        .add_generation_prompt = add_generation_prompt,
                        .bos_token = bos_text(vocabulary),
                        .eos_token = eos_text(vocabulary)};
  for (const ChatMessage& message : messages) {
    inputs.messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  return chat_template->render(inputs);
}

}  // namespace ebb
