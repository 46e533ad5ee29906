// Chats: OpenAI's chat completions and Responses, Anthropic's Messages, the prompt that a chat would be, and its size.
#include "chat/same_reply.h"
#include "server/answer_start.h"
#include "server/chat_cues.h"
#include "server/chat_history.h"
#include "server/chat_plan.h"
#include "server/chat_shape.h"
#include "server/lane_id.h"
#include "server/messages_request.h"
#include "server/messages_shape.h"
#include "server/replies.h"
#include "server/responses_request.h"
#include "server/responses_shape.h"

namespace ebb {
namespace {

// Takes the plan's tokens. `body` as chat completions have it.
Result<AskedChoices> asked_choices(const ApiState& state, const ApiCall& call, ChatPlan& plan, const Json& body) {
  AskedChoices asked{.lane_id = chat_lane_id(call.request, body),
                     .options = plan.generation.options,
                     .resuming = plan.generation.resuming,
                     .rules = plan.rules,
                     .n = plan.generation.n_choices};
  EBB_ASSIGN_OR_RETURN(asked.history, chat_history(state, plan, body["messages"]));
  asked.options.recall.cues = chat_cues(plan.request);
  asked.resuming.same_reply = [rules = plan.rules](std::string_view written, std::string_view said) {
    return is_same_reply(rules, written, said);
  };
  return asked;
}

// A body of Responses as a plan of chat's; otherwise it is refused.
struct ResponsesPlan {
  Json body;
  ResponsesRequest request;
  ChatPlan plan;
};
std::optional<ResponsesPlan> plan_responses(const ApiState& state, const ApiCall& call) {
  std::optional<Json> body = read_body(call);
  if (!body) return std::nullopt;
  Result<ResponsesRequest> request = read_responses_request(*body);
  if (!request.ok()) return refuse(call, request.status()), std::nullopt;
  add_missing(request->chat, state.default_members);
  Result<ChatPlan> plan = plan_chat(state, request->chat);
  if (!plan.ok()) return refuse(call, plan.status()), std::nullopt;
  return ResponsesPlan{.body = *std::move(body), .request = *std::move(request), .plan = *std::move(plan)};
}

void send_input_tokens(const ApiCall& call, const ChatPlan& plan) {
  call.send(json_answer({{"object", "response.input_tokens"}, {"input_tokens", plan.tokens.size()}}));
}

// A body of Messages as a plan of chat's; otherwise it is refused.
struct MessagesPlan {
  MessagesRequest request;
  ChatPlan plan;
  // Nothing where context_management is not asked for.
  std::optional<ClearedContext> cleared = std::nullopt;
};
std::optional<MessagesPlan> plan_messages(const ApiState& state, const ApiCall& call) {
  const std::optional<Json> body = read_body(call);
  if (!body) return std::nullopt;
  Result<MessagesRequest> request = read_messages_request(*body);
  if (!request.ok()) return refuse(call, request.status()), std::nullopt;
  add_missing(request->chat, state.default_members);
  Result<ChatPlan> plan = plan_chat(state, request->chat);
  if (!plan.ok()) return refuse(call, plan.status()), std::nullopt;
  MessagesPlan planned{.request = *std::move(request), .plan = *std::move(plan)};
  if (planned.request.edits) {
    planned.cleared = clear_context(*planned.request.edits, planned.plan.request, planned.plan.prompt,
                                    planned.plan.tokens, state.engine.vocabulary(), state.engine.shape().block_size);
    planned.plan.cleared = planned.cleared->spans;
  }
  return planned;
}

}  // namespace

void answer_chat(ApiState& state, const ApiCall& call) {
  const std::optional<Json> body = read_request(state, call);
  if (!body) return;
  Result<ChatPlan> plan = plan_chat(state, *body);
  if (!plan.ok()) return refuse(call, plan.status());
  const Result<AskedChoices> asked = asked_choices(state, call, *plan, *body);
  if (!asked.ok()) return refuse(call, asked.status());
  auto shape = make_chat_shape(state.engine.vocabulary(),
                               {.head = reply_head(state, "chatcmpl-", plan->generation, plan->warnings),
                                .n_choices = plan->generation.n_choices,
                                .include_usage = plan->generation.include_usage});
  start_answer(state, call, plan->generation, {*asked}, std::move(shape));
}

void answer_responses(ApiState& state, const ApiCall& call) {
  std::optional<ResponsesPlan> planned = plan_responses(state, call);
  if (!planned) return;
  auto& [body, request, plan] = *planned;
  const Result<AskedChoices> asked = asked_choices(state, call, plan, request.chat);
  if (!asked.ok()) return refuse(call, asked.status());
  std::vector<std::string> warnings = request.warnings;
  warnings.insert(warnings.end(), plan.warnings.begin(), plan.warnings.end());
  auto shape = make_responses_shape(reply_head(state, "resp_", plan.generation, std::move(warnings)), body,
                                    std::move(request.renamed));
  start_answer(state, call, plan.generation, {*asked}, std::move(shape));
}

void answer_responses_tokens(ApiState& state, const ApiCall& call) {
  const std::optional<ResponsesPlan> planned = plan_responses(state, call);
  if (planned) send_input_tokens(call, planned->plan);
}

void answer_messages(ApiState& state, const ApiCall& call) {
  std::optional<MessagesPlan> planned = plan_messages(state, call);
  if (!planned) return;
  auto& [request, plan, cleared] = *planned;
  std::vector<std::string> warnings = std::move(request.warnings);
  warnings.insert(warnings.end(), plan.warnings.begin(), plan.warnings.end());
  MessagesShapeOptions shape{.head = reply_head(state, "msg_", plan.generation, std::move(warnings)),
                             .max_tokens = plan.generation.options.max_tokens,
                             .hides_thinking = request.hides_thinking};
  if (cleared) {
    shape.context_management = applied_edits_json(*cleared);
    shape.n_cleared_tokens = cleared->n_tokens;
  }
  if (request.n_marked) shape.n_marked_tokens = tokens_of_first(state, plan, *request.n_marked);
  const Result<AskedChoices> asked = asked_choices(state, call, plan, request.chat);
  if (!asked.ok()) return refuse(call, asked.status());
  start_answer(state, call, plan.generation, {*asked}, make_messages_shape(std::move(shape)));
}

void answer_messages_tokens(ApiState& state, const ApiCall& call) {
  const std::optional<MessagesPlan> planned = plan_messages(state, call);
  if (!planned) return;
  const auto n_tokens = std::ssize(planned->plan.tokens);
  Json answer = {{"input_tokens", n_tokens}};
  if (const auto& cleared = planned->cleared) {
    answer = {{"input_tokens", n_tokens - cleared->n_tokens},
              {"context_management", {{"original_input_tokens", n_tokens}}}};
  }
  call.send(json_answer(answer));
}

void answer_chat_input_tokens(ApiState& state, const ApiCall& call) {
  const std::optional<Json> body = read_request(state, call);
  if (!body) return;
  const Result<ChatPlan> plan = plan_chat(state, *body);
  if (!plan.ok()) return refuse(call, plan.status());
  send_input_tokens(call, *plan);
}

void answer_apply_template(ApiState& state, const ApiCall& call) {
  const std::optional<Json> body = read_request(state, call);
  if (!body) return;
  const Result<ChatRendering> rendering = render_chat(state, *body);
  if (!rendering.ok()) return refuse(call, rendering.status());
  call.send(json_answer({{"prompt", rendering->prompt.text()}}));
}

}  // namespace ebb
