// What operators ask: the budget, and the places where requests are computed.
#include <algorithm>
#include <limits>

#include "server/api_state.h"

namespace ebb {
namespace {

// How layers or heads share a budget.
Json shares_json(const ApiState& state) {
  const BudgetList* const list = state.engine.session_options().budget_list.get();
  if (list == nullptr) return {{"by", "policy"}};
  return {{"by", list->scope == Scope::kLayer ? "layer" : "head"}, {"weights", list->weights}};
}

Json budget_json(const ApiState& state) {
  const SchedulerStats stats = state.scheduler.stats();
  return {{"tokens", stats.budget_tokens},
          {"prompt_tokens", std::max(stats.budget_tokens, state.engine.prompt_budget_tokens())},
          {"in_force_tokens", stats.in_force_tokens},
          {"most_tokens", state.engine.budget_tokens()},
          {"hot_tokens", stats.n_hot_tokens},
          {"shares", shares_json(state)},
          {"requests_processing", stats.n_running}};
}

// In llama.cpp's shape. Of others' requests only that they are there.
Json slot_json(const Seat& seat, std::size_t index, const ApiState& state, bool is_own) {
  Json json = {{"id", index},
               {"n_ctx", state.window_tokens()},
               {"is_processing", seat.busy},
               {"id_task", seat.busy && is_own ? Json(seat.request) : Json(-1)}};
  const Seat shown = is_own ? seat : Seat{};
  // Of one that is idle, and of others', how the server samples.
  const GenerationOptions& options = shown.request != 0 ? shown.options : state.default_request.options;
  const std::int32_t n_generated = shown.progress.stats.n_generated;
  const std::int32_t n_left = options.max_tokens < 0 ? -1 : std::max(0, options.max_tokens - n_generated);
  json.update({{"n_prompt_tokens", shown.progress.n_prompt},
               {"n_prompt_tokens_processed", shown.progress.n_computed},
               {"n_prompt_tokens_cache", shown.progress.n_cached},
               {"params",
                {{"n_predict", options.max_tokens},
                 {"temperature", options.sampling.temperature},
                 {"top_k", options.sampling.top_k},
                 {"top_p", options.sampling.top_p},
                 {"min_p", options.sampling.min_p}}},
               {"next_token",
                Json::array({{{"n_decoded", n_generated}, {"n_remain", n_left}, {"has_next_token", shown.busy}}})}});
  return json;
}

}  // namespace

void answer_budget(ApiState& state, const ApiCall& call) { call.send(json_answer(budget_json(state))); }

void answer_set_budget(ApiState& state, const ApiCall& call) {
  if (state.keys()->size() > 1) {
    return call.send(to_answer({.status = 403,
                                .type = "permission_error",
                                .message = "the budget of all sessions is nobody's where there are several keys"}));
  }
  const std::optional<Json> body = read_body(call);
  if (!body) return;
  JsonFields fields(*body);
  const std::int64_t n_tokens = fields.integer("tokens", 0, 1, std::numeric_limits<std::int32_t>::max());
  if (!fields.status().ok()) return refuse(call, fields.status());
  if (const Status set = state.scheduler.set_budget(static_cast<std::int32_t>(n_tokens)); !set.ok()) {
    fields.refuse("tokens", set.message());
    return refuse(call, fields.status());
  }
  call.send(json_answer(budget_json(state)));
}

void answer_slots(ApiState& state, const ApiCall& call) {
  if (!state.options.slots) {
    return call.send(to_answer(
        {.status = 501, .type = "not_supported_error", .message = "this server was started with --no-slots"}));
  }
  const std::vector<Seat> seats = state.scheduler.seats();
  const bool any_idle = std::ranges::any_of(seats, [](const Seat& seat) { return !seat.busy; });
  if (!any_idle && call.request.find_query("fail_on_no_slot").value_or("0") == "1") {
    return call.send(to_answer({.status = 503,
                                .type = "unavailable_error",
                                .message = "no slot is idle; try again later",
                                .retry_after_s = 1}));
  }
  Json all = Json::array();
  for (std::size_t i = 0; i < seats.size(); ++i) {
    all.push_back(slot_json(seats[i], i, state, seats[i].owner == call.owner));
  }
  call.send(json_answer(all));
}

void answer_slot_act(ApiState& /*state*/, const ApiCall& call) {
  call.send(to_answer({.status = 501,
                       .type = "not_supported_error",
                       .message = "slots hold no session of their own; POST /v1/sessions/{id}/export and "
                                  "/v1/sessions/import save and restore one, DELETE /v1/sessions/{id} erases it"}));
}

}  // namespace ebb
