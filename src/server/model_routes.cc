#include <array>

#include "base/version.h"
#include "server/api_state.h"
#include "server/sampling_fields.h"

namespace ebb {
namespace {

std::optional<std::vector<Token>> token_array(const Json& json, const Vocabulary& vocabulary) {
  if (!json.is_array()) return std::nullopt;
  std::vector<Token> tokens;
  for (const Json& one : json) {
    if (!one.is_number_integer() || one.get<std::int64_t>() < 0 || one.get<std::int64_t>() >= vocabulary.n_tokens()) {
      return std::nullopt;
    }
    tokens.emplace_back(one.get<std::int32_t>());
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

void add_metric(std::string& text, const char* kind, const std::string& name, const char* help, double value) {
  text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, kind, value);
}

struct HttpMetric {
  const char* kind;
  const char* name;
  const char* help;
  std::uint64_t HttpCounters::*value;
};

constexpr std::array kHttpMetrics = {
    HttpMetric{"gauge", "ebb:http_connections", "Connections that are open", &HttpCounters::n_connections},
    HttpMetric{"counter", "ebb:http_accepted_total", "Connections accepted", &HttpCounters::n_accepted},
    HttpMetric{"counter", "ebb:http_turned_away_total", "Connections too many", &HttpCounters::n_turned_away},
    HttpMetric{"counter", "ebb:http_accept_failures_total", "Connections that waited for descriptors or memory",
               &HttpCounters::n_accept_failures},
    HttpMetric{"counter", "ebb:http_requests_total", "Requests read", &HttpCounters::n_requests},
    HttpMetric{"counter", "ebb:http_refused_total", "Requests malformed, too large or too slow",
               &HttpCounters::n_refused},
    HttpMetric{"counter", "ebb:http_left_total", "Clients that left before their answer was complete",
               &HttpCounters::n_left},
    HttpMetric{"counter", "ebb:http_too_slow_total", "Clients dropped for not reading", &HttpCounters::n_too_slow},
    HttpMetric{"counter", "ebb:http_failures_total", "Requests and connections ended by an error inside the server",
               &HttpCounters::n_failures},
    HttpMetric{"gauge", "ebb:http_body_bytes", "Bytes of bodies being read or answered", &HttpCounters::body_bytes},
};

Json model_json(const ApiState& state, const std::string& name, Json meta) {
  return {{"id", name},        {"object", "model"},        {"created", state.started},
          {"owned_by", "ebb"}, {"aliases", Json::array()}, {"meta", std::move(meta)}};
}

// The model that generates, and the one that embeds where there is one.
Json all_models(const ApiState& state) {
  const Hparams& hparams = state.engine.model().hparams();
  Json models = Json::array();
  models.push_back(model_json(state, state.options.model_name,
                              {{"n_ctx", state.engine.budget_tokens()},
                               {"n_ctx_train", hparams.n_ctx_train},
                               {"n_vocab", hparams.n_vocab},
                               {"n_embd", hparams.n_embd}}));
  if (const Embedder* const embedder = state.options.embedder; embedder != nullptr) {
    models.push_back(model_json(
        state, state.options.embedding_model_name,
        {{"n_ctx", embedder->max_tokens()}, {"n_vocab", embedder->n_vocab()}, {"n_embd", embedder->n_dimensions()}}));
  }
  return models;
}

}  // namespace

void answer_health(ApiState& /*state*/, const ApiCall& call) { call.send(json_answer({{"status", "ok"}})); }

void answer_models(ApiState& state, const ApiCall& call) {
  call.send(json_answer({{"object", "list"}, {"data", all_models(state)}}));
}

void answer_model(ApiState& state, const ApiCall& call) {
  for (const Json& model : all_models(state)) {
    if (model["id"] == call.id) return call.send(json_answer(model));
  }
  call.send(
      to_answer({.status = 404, .type = "not_found_error", .message = "no such model; GET /v1/models lists them"}));
}

void answer_props(ApiState& state, const ApiCall& call) {
  const Vocabulary& vocabulary = state.engine.vocabulary();
  call.send(json_answer({{"default_generation_settings",
                          {{"params", sampling_json({})}, {"n_ctx", state.engine.model().hparams().n_ctx_train}}},
                         {"model_alias", state.options.model_name},
                         {"model_path", state.options.model_path},
                         {"modalities", {{"vision", false}, {"audio", false}}},
                         {"chat_template", state.chat_template->source()},
                         {"bos_token", shown_piece(vocabulary, vocabulary.bos())},
                         {"eos_token", shown_piece(vocabulary, vocabulary.eos())},
                         {"kv_budget_tokens", state.engine.budget_tokens()},
                         {"build_info", fmt::format("ebb-{}", kVersion)}}));
}

void answer_metrics(ApiState& state, const ApiCall& call) {
  const SchedulerStats s = state.scheduler.stats();
  std::string text;
  // Under llama.cpp's names too, so that dashboards made for it work.
  for (const std::string prefix : {"ebb:", "llamacpp:"}) {
    const auto counter = [&](const char* name, const char* help, double value) {
      add_metric(text, "counter", prefix + name, help, value);
    };
    const auto gauge = [&](const char* name, const char* help, double value) {
      add_metric(text, "gauge", prefix + name, help, value);
    };
    counter("prompt_tokens_total", "Prompt tokens computed", static_cast<double>(s.n_prompt_tokens));
    counter("prompt_tokens_cached_total", "Prompt tokens not computed", static_cast<double>(s.n_cached_tokens));
    counter("prompt_seconds_total", "Time in prompts", s.prompt_ms / 1000.0);
    counter("tokens_predicted_total", "Tokens generated", static_cast<double>(s.n_generated_tokens));
    counter("tokens_predicted_seconds_total", "Time in generating", s.generated_ms / 1000.0);
    counter("n_decode_total", "Steps of the engine", static_cast<double>(s.n_steps));
    gauge("requests_processing", "Requests at work", static_cast<double>(s.n_running));
    gauge("requests_deferred", "Requests that wait", static_cast<double>(s.n_waiting));
  }
  add_metric(text, "counter", "ebb:requests_total", "Requests ended", static_cast<double>(s.n_requests));
  add_metric(text, "gauge", "ebb:sessions", "Sessions known", static_cast<double>(s.n_lanes));
  add_metric(text, "gauge", "ebb:kv_hot_tokens", "Tokens whose K and V are hot", s.n_hot_tokens);
  add_metric(text, "gauge", "ebb:kv_budget_tokens", "Tokens that may be hot", s.budget_tokens);
  const LaneFolderStats& kept = s.kept;
  add_metric(text, "gauge", "ebb:kept_sessions", "Sessions that are kept on disk", static_cast<double>(kept.n_images));
  add_metric(text, "gauge", "ebb:kept_session_bytes", "Bytes of their files", static_cast<double>(kept.bytes));
  add_metric(text, "gauge", "ebb:kept_sessions_waiting", "Images on their way to the disk",
             static_cast<double>(kept.n_waiting));
  add_metric(text, "counter", "ebb:kept_sessions_written_total", "Images of sessions that were written",
             static_cast<double>(kept.n_written));
  add_metric(text, "counter", "ebb:kept_sessions_failed_total", "Images that could not be written",
             static_cast<double>(kept.n_write_errors));
  add_metric(text, "counter", "ebb:kept_sessions_dropped_total", "Images that made room for others",
             static_cast<double>(kept.n_dropped));
  add_metric(text, "gauge", "ebb:kept_sessions_resumed", "Sessions taken up again at the start",
             static_cast<double>(kept.n_resumed));
  add_metric(text, "gauge", "ebb:kept_sessions_refused", "Images found damaged at the start",
             static_cast<double>(kept.n_refused));
  add_metric(text, "gauge", "ebb:kept_sessions_foreign", "Images of another model, layout or owner at the start",
             static_cast<double>(kept.n_foreign));
  if (state.options.http_counters) {
    const HttpCounters http = state.options.http_counters();
    for (const HttpMetric& metric : kHttpMetrics) {
      add_metric(text, metric.kind, metric.name, metric.help, static_cast<double>(http.*metric.value));
    }
  }
  text += store_metrics(state);
  call.send({.headers = {{"Content-Type", "text/plain; version=0.0.4"},
                         {"Process-Start-Time-Unix", std::to_string(state.started)}},
             .body = std::move(text)});
}

void answer_tokenize(ApiState& state, const ApiCall& call) {
  const std::optional<Json> body = read_body(call);
  if (!body) return;
  Fields fields(*body);
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
