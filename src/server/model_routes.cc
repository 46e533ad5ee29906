// What is loaded: models, the template, the vocabulary.
#include <fmt/chrono.h>

#include "base/version.h"
#include "chat/tool_text.h"
#include "engine/file_type.h"
#include "server/api_state.h"
#include "server/native_shape.h"

namespace ebb {
namespace {

std::optional<std::vector<Token>> token_array(const Json& json, const Vocabulary& vocabulary) {
  if (!json.is_array()) return std::nullopt;
  std::vector<Token> tokens;
  for (const Json& one : json) {
    const auto id = integer_between(one, 0, vocabulary.n_tokens() - 1);
    if (!id) return std::nullopt;
    tokens.emplace_back(static_cast<std::int32_t>(*id));
  }
  return tokens;
}

std::string shown_piece(const Vocabulary& vocabulary, std::optional<Token> token) {
  if (!token) return {};
  const Result<std::string> piece = vocabulary.piece(*token, SpecialTokens::kShow);
  return piece.ok() ? *piece : std::string();
}

// Bytes where the piece alone is not UTF-8.
Json piece_json(const std::string& piece) {
  try {
    (void)Json(piece).dump();
    return piece;
  } catch (const Json::type_error&) {
    Json bytes = Json::array();
    for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
    return bytes;
  }
}

Json model_json(const ApiState& state, const std::string& name, const std::vector<std::string>& aliases, Json meta) {
  return {{"id", name},        {"object", "model"},  {"created", state.started},
          {"owned_by", "ebb"}, {"aliases", aliases}, {"meta", std::move(meta)}};
}

// The model that generates, and the one that embeds where there is one. Clients compact at n_ctx: it is the logical window.
Json all_models(const ApiState& state) {
  const Hparams& hparams = state.engine.model().hparams();
  const GgufFile& file = state.engine.model().file();
  Json models = Json::array();
  models.push_back(model_json(state, state.options.model_name, state.options.aliases,
                              {{"n_ctx", state.window_tokens()},
                               {"n_ctx_train", hparams.n_ctx_train},
                               {"n_vocab", hparams.n_vocab},
                               {"n_embd", hparams.n_embd},
                               {"n_params", file.n_parameters()},
                               {"size", file.n_tensor_bytes()},
                               {"ftype", file_type_name(file)}}));
  if (const Embedder* const embedder = state.options.embedder; embedder != nullptr) {
    models.push_back(model_json(
        state, state.options.embedding_model_name, {},
        {{"n_ctx", embedder->max_tokens()}, {"n_vocab", embedder->n_vocab()}, {"n_embd", embedder->n_dimensions()}}));
  }
  return models;
}

// As Anthropic's server says it.
Json anthropic_model_json(const ApiState& state, const Json& model) {
  return {{"type", "model"},
          {"id", model["id"]},
          {"display_name", model["id"]},
          {"created_at", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(state.started))}};
}

Json anthropic_models_json(const ApiState& state) {
  Json data = Json::array();
  for (const Json& model : all_models(state)) data.push_back(anthropic_model_json(state, model));
  return {{"data", data}, {"has_more", false}, {"first_id", data.front()["id"]}, {"last_id", data.back()["id"]}};
}

// Where a template shows no tools they are described in words, so that they work all the same.
Json template_caps_json(const ApiState& state) {
  const ChatTemplate& with_tools = state.tool_template != nullptr ? *state.tool_template : *state.chat_template;
  return {{"supports_system_role", shows_system_text(*state.chat_template, state.template_tokens)},
          {"supports_tools", state.taught_calls.shows_tools()},
          {"supports_tool_calls", shows_calls(with_tools, state.template_tokens)}};
}

}  // namespace

void answer_health(ApiState& /*state*/, const ApiCall& call) { call.send(json_answer({{"status", "ok"}})); }

void answer_models(ApiState& state, const ApiCall& call) {
  if (is_anthropics(call.request)) return call.send(json_answer(anthropic_models_json(state)));
  call.send(json_answer({{"object", "list"}, {"data", all_models(state)}}));
}

void answer_model(ApiState& state, const ApiCall& call) {
  for (const Json& model : all_models(state)) {
    const Json& aliases = model["aliases"];
    const bool is_it = model["id"] == call.id || std::ranges::find(aliases, Json(call.id)) != aliases.end();
    if (!is_it) continue;
    return call.send(json_answer(is_anthropics(call.request) ? anthropic_model_json(state, model) : model));
  }
  call.refuse({.status = 404, .type = "not_found_error", .message = "no such model; GET /v1/models lists them"});
}

void answer_props(ApiState& state, const ApiCall& call) {
  const Vocabulary& vocabulary = state.engine.vocabulary();
  const Json defaults = {
      {"params", generation_settings_json(state.default_request, state.default_request.options.sampling.seed)},
      {"n_ctx", state.window_tokens()}};
  call.send(json_answer({{"default_generation_settings", defaults},
                         {"total_slots", state.scheduler.options().n_parallel},
                         {"model_alias", state.options.model_name},
                         {"model_path", state.options.model_path},
                         {"modalities", {{"vision", false}, {"audio", false}}},
                         {"chat_template", state.chat_template->source()},
                         {"chat_template_caps", template_caps_json(state)},
                         {"bos_token", shown_piece(vocabulary, vocabulary.bos())},
                         {"eos_token", shown_piece(vocabulary, vocabulary.eos())},
                         {"model_fingerprint", state.engine.model().fingerprint().hex()},
                         {"kv_budget_tokens", state.engine.budget_tokens()},
                         {"kv_eviction", state.engine.policy().spec()},
                         {"kv_prompt_budget_tokens", state.engine.prompt_budget_tokens()},
                         {"kv_sparse_prompt", state.engine.session_options().sparse_prompt.text()},
                         {"build_info", fmt::format("ebb-{}", kVersion)}}));
}

void answer_tokenize(ApiState& state, const ApiCall& call) {
  const std::optional<Json> body = read_body(call);
  if (!body) return;
  JsonFields fields(*body);
  const std::string content = fields.text("content");
  const TokenizeOptions options = {.add_bos = fields.boolean("add_special", false),
                                   .parse_special = fields.boolean("parse_special", true)};
  const bool with_pieces = fields.boolean("with_pieces", false);
  if (!fields.status().ok()) return refuse(call, fields.status());
  const Vocabulary& vocabulary = state.engine.vocabulary();
  const Result<std::vector<Token>> tokens = vocabulary.tokenize(content, options);
  if (!tokens.ok()) return refuse(call, tokens.status());
  Json list = Json::array();
  for (const Token token : *tokens) {
    if (with_pieces) {
      list.push_back({{"id", token.value()}, {"piece", piece_json(shown_piece(vocabulary, token))}});
    } else {
      list.push_back(token.value());
    }
  }
  call.send(json_answer({{"tokens", std::move(list)}}));
}

void answer_detokenize(ApiState& state, const ApiCall& call) {
  const std::optional<Json> body = read_body(call);
  if (!body) return;
  const auto tokens = token_array(body->contains("tokens") ? (*body)["tokens"] : Json(), state.engine.vocabulary());
  if (!tokens) {
    return call.send(to_answer({.message = "Field 'tokens': must be an array of token ids of this model"}));
  }
  const Result<std::string> text = state.engine.vocabulary().detokenize(*tokens, SpecialTokens::kShow);
  if (!text.ok()) return refuse(call, text.status());
  call.send(json_answer({{"content", *text}}));
}

}  // namespace ebb
