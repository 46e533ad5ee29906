#include "server/api_state.h"

#include "chat/model_template.h"
#include "grammar/gbnf.h"
#include "json/parse_json.h"

namespace ebb {

Status ApiState::open() {
  const Vocabulary& vocabulary = engine.vocabulary();
  template_tokens = {.bos = bos_text(vocabulary), .eos = eos_text(vocabulary)};
  const auto source_of = [&](bool has_tools) {
    return options.chat_template.empty() ? template_source(vocabulary, has_tools) : options.chat_template;
  };
  EBB_ASSIGN_OR_RETURN(ChatTemplate plain, ChatTemplate::compile(source_of(false)));
  chat_template = std::make_unique<ChatTemplate>(std::move(plain));
  if (std::string source = source_of(true); source != chat_template->source()) {
    EBB_ASSIGN_OR_RETURN(ChatTemplate with_tools, ChatTemplate::compile(std::move(source)));
    tool_template = std::make_unique<ChatTemplate>(std::move(with_tools));
  }
  EBB_ASSIGN_OR_RETURN(default_members, ebb::default_members(options.defaults));
  EBB_ASSIGN_OR_RETURN(default_request,
                       parse_generation_request(default_members, vocabulary, limits(), options.resuming));
  if (const std::string& grammar = default_request.options.sampling.grammar; !grammar.empty()) {
    const Result<Gbnf> read = read_gbnf(vocabulary, grammar, default_request.options.sampling.grammar_root);
    if (!read.ok()) return error(Code::kInvalidArgument, "--grammar: {}", read.status().message());
  }
  taught_calls = TaughtCalls::find(tool_template != nullptr ? *tool_template : *chat_template, template_tokens);
  return {};
}

void answer_guarded(const ApiCall& call, const std::function<void()>& work) {
  if (call.responder->is_closed()) return;
  try {
    work();
  } catch (const std::exception&) {
    if (call.responder->is_closed()) return;
    call.refuse(internal_error());
  }
}

void refuse(const ApiCall& call, const Status& status) { call.refuse(to_api_error(status)); }

std::optional<Json> read_body(const ApiCall& call) {
  Result<Json> body = parse_json(call.request.body);
  if (body.ok() && body->is_object()) return *std::move(body);
  refuse(call, body.ok() ? JsonFields(*body).status() : body.status());
  return std::nullopt;
}

std::optional<Json> read_request(const ApiState& state, const ApiCall& call) {
  std::optional<Json> body = read_body(call);
  if (body) add_missing(*body, state.default_members);
  return body;
}

}  // namespace ebb
