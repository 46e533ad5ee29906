// Chat and text completions, and the prompt that a chat would be.
#include <ctime>

#include "server/answer.h"
#include "server/api_state.h"
#include "server/generation_request.h"
#include "server/lane_id.h"
#include "text/chat_request.h"
#include "text/prompt_tokens.h"

namespace ebb {
namespace {

// A long prompt is its own question; of a message its end says what it is about.
constexpr std::size_t kQuestionBytes = 2048;

void refuse(const ApiCall& call, const Status& status) { call.send(to_answer(to_api_error(status))); }

Result<Json> object_of(const ApiCall& call) {
  EBB_ASSIGN_OR_RETURN(Json body, parse_json(call.request.body));
  EBB_RETURN_IF_ERROR(Fields(body).status());
  return body;
}

// Whether the sampler takes the options, a grammar above all: after the first byte of a stream it is too late to say no.
Status check_sampling(const ApiState& state, const GenerationOptions& options) {
  return Sampler::create(state.engine.vocabulary(), options.sampling).status();
}

// Clients compact when they read "exceeds the available context size".
std::optional<ApiError> context_error(const ApiState& state, std::size_t n_tokens) {
  const auto n_ctx = static_cast<std::size_t>(state.engine.model().hparams().n_ctx_train);
  if (state.engine.session_options().rebases || n_tokens < n_ctx) return std::nullopt;
  return ApiError{.type = "exceed_context_size_error",
                  .message = fmt::format("request ({} tokens) exceeds the available context size ({} tokens), try "
                                         "increasing it",
                                         n_tokens, n_ctx),
                  .more = {{"n_prompt_tokens", n_tokens}, {"n_ctx", n_ctx}}};
}

std::string end_of(std::string_view text) {
  return std::string(text.substr(text.size() - std::min(text.size(), kQuestionBytes)));
}

struct Prompt {
  std::vector<Token> tokens;
  std::string lane_id;
  // What cold blocks are recalled for.
  std::string question;
};

void answer(ApiState& state, const ApiCall& call, const Json& body, Prompt prompt, bool is_chat) {
  Result<GenerationRequest> parsed = parse_generation_request(body, state.engine.vocabulary());
  if (!parsed.ok()) return refuse(call, parsed.status());
  if (const Status status = check_sampling(state, parsed->options); !status.ok()) return refuse(call, status);
  if (const auto too_long = context_error(state, prompt.tokens.size())) return call.send(to_answer(*too_long));
  const auto n_prompt = static_cast<std::int32_t>(prompt.tokens.size());
  parsed->options.recall_question = std::move(prompt.question);
  parsed->options.max_recalled_blocks = state.options.n_recalled_blocks;
  Request request{.owner = call.owner, .lane_id = std::move(prompt.lane_id), .options = std::move(parsed->options)};
  request.history.push_back({.tokens = std::move(prompt.tokens)});
  const AnswerOptions options{.head = {.id = new_id(is_chat ? "chatcmpl-" : "cmpl-"),
                                       .created = std::time(nullptr),
                                       .model = state.options.model_name,
                                       .is_chat = is_chat},
                              .n_prompt = n_prompt,
                              .stream = parsed->stream,
                              .include_usage = parsed->include_usage,
                              .ping_after = state.options.ping_after,
                              .headers = call.headers};
  std::make_shared<Answer>(options, call.responder)->send(state.scheduler, std::move(request));
}

Result<std::vector<Token>> prompt_tokens(const Json& prompt, const Vocabulary& vocabulary) {
  if (prompt.is_string()) {
    return vocabulary.tokenize(prompt.get<std::string>(), {.add_bos = true, .parse_special = true});
  }
  std::vector<Token> tokens;
  if (!prompt.is_array() || prompt.empty()) {
    return error(Code::kInvalidArgument, "Field 'prompt': must be a string or an array of token ids and strings");
  }
  for (const Json& part : prompt) {
    if (part.is_string()) {
      EBB_ASSIGN_OR_RETURN(
          const std::vector<Token> more,
          vocabulary.tokenize(part.get<std::string>(), {.add_bos = tokens.empty(), .parse_special = true}));
      tokens.insert(tokens.end(), more.begin(), more.end());
    } else if (part.is_number_integer() && part.get<std::int64_t>() >= 0 &&
               part.get<std::int64_t>() < vocabulary.n_tokens()) {
      tokens.emplace_back(part.get<std::int32_t>());
    } else {
      return error(
          Code::kInvalidArgument,
          "Field 'prompt': holds neither a string nor a token id of this model (several prompts in one request "
          "are not supported)");
    }
  }
  return tokens;
}

// What an answer would need that this server cannot do yet: parsing calls out of a reply, and grammars from schemas.
Status check_supported(const Json& body, const ChatRequest& request) {
  const bool wants_no_call = body.contains("tool_choice") && body["tool_choice"] == "none";
  if (request.tools.is_array() && !request.tools.empty() && !wants_no_call) {
    return error(Code::kUnsupported,
                 "Field 'tools': calls of tools are not supported yet; leave tools out or send "
                 "tool_choice \"none\"");
  }
  if (body.contains("response_format") && body["response_format"].is_object() &&
      body["response_format"].value("type", Json("text")) != "text") {
    return error(Code::kUnsupported, "Field 'response_format': only \"text\" is supported yet; 'grammar' takes GBNF");
  }
  if (body.contains("json_schema") && !body["json_schema"].is_null()) {
    return error(Code::kUnsupported, "Field 'json_schema': not supported yet; 'grammar' takes GBNF");
  }
  return {};
}

std::string last_user_text(const ChatRequest& request) {
  for (auto message = request.messages.rbegin(); message != request.messages.rend(); ++message) {
    if ((*message)["role"] == "user" && (*message)["content"].is_string()) {
      return end_of((*message)["content"].get_ref<const std::string&>());
    }
  }
  return {};
}

Result<ChatPrompt> render(const ApiState& state, const ChatRequest& request) {
  const bool has_tools = request.tools.is_array() && !request.tools.empty();
  const ChatTemplate& chat_template =
      has_tools && state.tool_template != nullptr ? *state.tool_template : *state.chat_template;
  return render_chat_request(chat_template, request, state.template_tokens);
}

}  // namespace

void answer_chat(ApiState& state, const ApiCall& call) {
  const Result<Json> body = object_of(call);
  if (!body.ok()) return refuse(call, body.status());
  const Result<ChatRequest> request = read_chat_request(*body);
  if (!request.ok()) return refuse(call, request.status());
  if (const Status status = check_supported(*body, *request); !status.ok()) {
    return call.send(to_answer({.status = 501, .type = "not_supported_error", .message = status.message()}));
  }
  const Result<ChatPrompt> rendered = render(state, *request);
  if (!rendered.ok()) return refuse(call, rendered.status());
  Result<std::vector<Token>> tokens = tokenize_prompt(state.engine.vocabulary(), *rendered, true);
  if (!tokens.ok()) return refuse(call, tokens.status());
  answer(state, call, *body,
         {.tokens = *std::move(tokens),
          .lane_id = chat_lane_id(call.request, *body),
          .question = last_user_text(*request)},
         true);
}

void answer_apply_template(ApiState& state, const ApiCall& call) {
  const Result<Json> body = object_of(call);
  if (!body.ok()) return refuse(call, body.status());
  const Result<ChatRequest> request = read_chat_request(*body);
  if (!request.ok()) return refuse(call, request.status());
  const Result<ChatPrompt> rendered = render(state, *request);
  if (!rendered.ok()) return refuse(call, rendered.status());
  call.send(json_answer({{"prompt", rendered->text()}}));
}

void answer_completion(ApiState& state, const ApiCall& call) {
  const Result<Json> body = object_of(call);
  if (!body.ok()) return refuse(call, body.status());
  const Json given = body->contains("prompt") ? (*body)["prompt"] : Json();
  Result<std::vector<Token>> tokens = prompt_tokens(given, state.engine.vocabulary());
  if (!tokens.ok()) return refuse(call, tokens.status());
  for (const char* name : {"echo", "suffix"}) {
    if (body->contains(name) && !(*body)[name].is_null() && (*body)[name] != false) {
      return call.send(to_answer({.message = fmt::format("Field '{}': not supported by this server", name)}));
    }
  }
  Prompt prompt{.tokens = *std::move(tokens), .lane_id = client_session_id(call.request, *body)};
  if (!prompt.lane_id.empty()) prompt.lane_id += "~text";
  if (given.is_string()) prompt.question = end_of(given.get_ref<const std::string&>());
  answer(state, call, *body, std::move(prompt), false);
}

}  // namespace ebb
