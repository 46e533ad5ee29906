#include "server/api_state.h"

#include "text/model_template.h"

namespace ebb {

Status ApiState::open() {
  const Vocabulary& vocabulary = engine.vocabulary();
  template_tokens = {.bos = bos_text(vocabulary), .eos = eos_text(vocabulary)};
  EBB_ASSIGN_OR_RETURN(ChatTemplate plain, ChatTemplate::compile(template_source(vocabulary, false)));
  chat_template = std::make_unique<ChatTemplate>(std::move(plain));
  if (std::string source = template_source(vocabulary, true); source != chat_template->source()) {
    EBB_ASSIGN_OR_RETURN(ChatTemplate with_tools, ChatTemplate::compile(std::move(source)));
    tool_template = std::make_unique<ChatTemplate>(std::move(with_tools));
  }
  return {};
}

std::optional<Json> read_body(const ApiCall& call) {
  Result<Json> body = parse_json(call.request.body);
  if (body.ok() && body->is_object()) return *std::move(body);
  const Status status = body.ok() ? Fields(*body).status() : body.status();
  call.send(to_answer(to_api_error(status)));
  return std::nullopt;
}

}  // namespace ebb
