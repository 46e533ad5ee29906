// What the routes of the API share. A part of it (server/api.h), apart so that routes can lie in files of their own.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "chat/chat_request.h"
#include "chat/taught_calls.h"
#include "server/api.h"
#include "server/api_error.h"
#include "server/generation_request.h"
#include "server/key_bound.h"
#include "server/loss_log.h"
#include "server/workers.h"

namespace ebb {

// One request on its way through a route.
struct ApiCall {
  HttpRequest request;
  std::shared_ptr<Responder> responder;
  // Headers of every answer to it.
  HttpHeaders headers = {};
  // Whose it is; "" where there are no keys.
  std::string owner = {};
  // What stands in the path where the route has {id} and {act}.
  std::string id = {};
  std::string act = {};
  // How the route says errors.
  ErrorShape error_shape = error_json;

  void refuse(const ApiError& error) const { send(to_answer(error, error_shape)); }
  void send(HttpAnswer answer) const {
    answer.headers.insert(answer.headers.end(), headers.begin(), headers.end());
    responder->send(std::move(answer));
  }
};

// Whether its client speaks Anthropic's API, whatever the route.
[[nodiscard]] inline bool is_anthropics(const HttpRequest& request) {
  return request.find_header("anthropic-version") != nullptr;
}

struct ApiState {
  ApiState(const Engine& e, Scheduler& s, ApiOptions o)
      : engine(e),
        scheduler(s),
        options(std::move(o)),
        workers({.n_threads = options.n_workers, .n_most = options.n_most_workers}) {
    set_keys(std::move(options.keys));
  }
  Status open();
  // What any request may ask for.
  [[nodiscard]] GenerationLimits limits() const {
    return {.max_choices = scheduler.options().n_parallel,
            .prompt_budget_tokens = engine.prompt_budget_tokens(),
            .policies = scheduler.options().lanes.policies,
            .check_sparse_prompt = [this](const SparsePrompt& prompt) { return engine.check_sparse_prompt(prompt); },
            .check_selectors = [this](const SelectorList& selectors) { return engine.check_selectors(selectors); }};
  }

  // Those of now; a request that was let in goes on when its key is taken away.
  [[nodiscard]] std::shared_ptr<const ApiKeys> keys() const {
    const std::scoped_lock lock(keys_mutex);
    return current_keys;
  }
  void set_keys(ApiKeys keys) {
    auto next = std::make_shared<const ApiKeys>(std::move(keys));
    const std::scoped_lock lock(keys_mutex);
    current_keys = std::move(next);
  }
  // Requests that may wait to be read.
  [[nodiscard]] Workers::Most most_waiting() const {
    return {.all = options.max_waiting, .of_owner = key_bound(std::nullopt, options.max_waiting, keys()->size())};
  }

  // What clients see as the context's size.
  [[nodiscard]] std::int32_t window_tokens() const {
    return options.window_tokens > 0 ? options.window_tokens : engine.model().hparams().n_ctx_train;
  }

  const Engine& engine;
  Scheduler& scheduler;
  ApiOptions options;
  std::unique_ptr<ChatTemplate> chat_template;
  // Where there are tools; null: the same.
  std::unique_ptr<ChatTemplate> tool_template;
  TemplateTokens template_tokens;
  // Of the template for tools.
  TaughtCalls taught_calls;
  // The members of options.defaults, and a request that says nothing else.
  Json default_members;
  GenerationRequest default_request;
  std::time_t started = std::time(nullptr);
  mutable LossLog losses{options.tell_loss};
  mutable std::mutex keys_mutex;
  std::shared_ptr<const ApiKeys> current_keys;
  // Last: what they run uses all of the above, and `workers` posts to the first.
  Workers embedding_worker{Workers::Size()};
  // What asks the scheduler waits until its step ends; a prompt is rendered meanwhile.
  Workers askers{Workers::Size()};
  Workers workers;
};

// Does the work of answering, if the client still waits for it. What a library throws there does not end the process:
// it becomes a 500. The work must not have begun a stream: only an Answer does (server/answer.h), and lets nothing out.
void answer_guarded(const ApiCall& call, const std::function<void()>& work);

// Answers that the request is wrong, or cannot be.
void refuse(const ApiCall& call, const Status& status);
// A JSON body that is an object; otherwise it is refused.
std::optional<Json> read_body(const ApiCall& call);
// The body of a request that generates, with what holds where it does not say; otherwise it is refused.
std::optional<Json> read_request(const ApiState& state, const ApiCall& call);

// model_routes.cc
void answer_health(ApiState& state, const ApiCall& call);
void answer_models(ApiState& state, const ApiCall& call);
void answer_model(ApiState& state, const ApiCall& call);
void answer_props(ApiState& state, const ApiCall& call);
void answer_tokenize(ApiState& state, const ApiCall& call);
void answer_detokenize(ApiState& state, const ApiCall& call);

// session_routes.cc
void answer_sessions(ApiState& state, const ApiCall& call);
void answer_session(ApiState& state, const ApiCall& call);
void answer_delete_session(ApiState& state, const ApiCall& call);
void answer_blocks(ApiState& state, const ApiCall& call);
void answer_block_act(ApiState& state, const ApiCall& call);
void answer_session_budget(ApiState& state, const ApiCall& call);
void answer_session_policy(ApiState& state, const ApiCall& call);
void answer_export(ApiState& state, const ApiCall& call);
void answer_import(ApiState& state, const ApiCall& call);

// metrics_routes.cc
void answer_metrics(ApiState& state, const ApiCall& call);

// operation_routes.cc
void answer_budget(ApiState& state, const ApiCall& call);
void answer_set_budget(ApiState& state, const ApiCall& call);
void answer_slots(ApiState& state, const ApiCall& call);
void answer_slot_act(ApiState& state, const ApiCall& call);

// policy_routes.cc
void answer_policies(ApiState& state, const ApiCall& call);

// store_routes.cc
void answer_store(ApiState& state, const ApiCall& call);
[[nodiscard]] std::string store_metrics(const ApiState& state);

// embedding_routes.cc
void answer_embeddings(ApiState& state, const ApiCall& call);
void answer_native_embedding(ApiState& state, const ApiCall& call);

// page_routes.cc
void answer_page(ApiState& state, const ApiCall& call);

// chat_routes.cc
void answer_chat(ApiState& state, const ApiCall& call);
void answer_responses(ApiState& state, const ApiCall& call);
void answer_responses_tokens(ApiState& state, const ApiCall& call);
void answer_chat_input_tokens(ApiState& state, const ApiCall& call);
void answer_messages(ApiState& state, const ApiCall& call);
void answer_messages_tokens(ApiState& state, const ApiCall& call);
void answer_apply_template(ApiState& state, const ApiCall& call);

// completion_routes.cc
void answer_completion(ApiState& state, const ApiCall& call);
void answer_native_completion(ApiState& state, const ApiCall& call);
void answer_infill(ApiState& state, const ApiCall& call);

}  // namespace ebb
