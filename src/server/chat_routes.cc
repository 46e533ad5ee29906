// Chats: OpenAI's chat completions and Responses, Anthropic's Messages, the prompt that a chat would be, and its size.
#include "chat/same_reply.h"
#include "server/answer_start.h"
#include "server/chat_cues.h"
#include "server/chat_history.h"
#include "server/chat_plan.h"
#include "server/chat_shape.h"
#include "server/custom_tools.h"
#include "server/lane_id.h"
#include "server/legacy_functions.h"
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
                     .lane_hint = lane_hint(body),
                     .options = plan.generation.options,
                     .resuming = plan.generation.resuming,
                     .rules = plan.rules,
                     .n = plan.generation.n_choices};
  EBB_ASSIGN_OR_RETURN(asked.history, chat_history(state, plan, body["messages"]));
  asked.options.recall.cues = chat_cues(plan.request);
  warn_of_reuse(asked.lane_id, asked.resuming.reuse, plan.warnings);
  const auto rules = std::make_shared<const ReplyRules>(plan.rules);
  asked.resuming.same_reply = {
      .whole = [rules](std::string_view written,
                       std::string_view said) { return is_same_reply(*rules, written, said); },
      .broken_off = [rules](std::string_view written,
                            std::string_view said) { return find_same_places(*rules, written, said); }};
  return asked;
}

// A chat request all of whose tools are functions.
struct ChatBody {
  Json json;
  CustomTools custom = {};
};

// Otherwise it is refused.
std::optional<ChatBody> read_chat_body(const ApiState& state, const ApiCall& call) {
  std::optional<Json> body = read_request(state, call);
  if (!body) return std::nullopt;
  if (const Status status = say_functions_as_tools(*body); !status.ok()) return refuse(call, status), std::nullopt;
  Result<CustomTools> custom = say_custom_tools_as_functions(*body);
  if (!custom.ok()) return refuse(call, custom.status()), std::nullopt;
  return ChatBody{.json = *std::move(body), .custom = *std::move(custom)};
}

// A body of another API, said as a chat request and planned as one.
template <class Request>
struct PlannedAsChat {
  Json body;
  Request request;
  ChatPlan plan;
};

// Otherwise it is refused. What `read` left out is told with the plan's warnings.
template <class Request>
std::optional<PlannedAsChat<Request>> plan_as_chat(const ApiState& state, const ApiCall& call,
                                                   Result<Request> (*read)(const Json&)) {
  std::optional<Json> body = read_body(call);
  if (!body) return std::nullopt;
  Result<Request> request = read(*body);
  if (!request.ok()) return refuse(call, request.status()), std::nullopt;
  add_missing(request->chat, state.default_members);
  Result<ChatPlan> plan = plan_chat(state, request->chat);
  if (!plan.ok()) return refuse(call, plan.status()), std::nullopt;
  plan->warnings.insert(plan->warnings.begin(), request->warnings.begin(), request->warnings.end());
  return PlannedAsChat<Request>{.body = *std::move(body), .request = *std::move(request), .plan = *std::move(plan)};
}

void send_input_tokens(const ApiCall& call, const ChatPlan& plan) {
  call.send(json_answer({{"object", "response.input_tokens"}, {"input_tokens", plan.tokens.size()}}));
}

// None: it is not asked for.
std::optional<ClearedContext> clear_as_asked(const ApiState& state, const MessagesRequest& request,
                                             const ChatPlan& plan) {
  if (!request.edits) return std::nullopt;
  return clear_context(*request.edits, plan.request, plan.prompt, plan.tokens, state.engine.vocabulary(),
                       state.engine.shape().block_size);
}

}  // namespace

void answer_chat(ApiState& state, const ApiCall& call) {
  const std::optional<ChatBody> body = read_chat_body(state, call);
  if (!body) return;
  Result<ChatPlan> plan = plan_chat(state, body->json);
  if (!plan.ok()) return refuse(call, plan.status());
  plan->warnings.insert(plan->warnings.begin(), body->custom.warnings.begin(), body->custom.warnings.end());
  const Result<AskedChoices> asked = asked_choices(state, call, *plan, body->json);
  if (!asked.ok()) return refuse(call, asked.status());
  auto shape = make_chat_shape(state.engine.vocabulary(),
                               {.head = reply_head(state, "chatcmpl-", plan->generation, plan->warnings),
                                .n_choices = plan->generation.n_choices,
                                .include_usage = plan->generation.include_usage,
                                .says_function_call = has_legacy_functions(body->json),
                                .custom_tools = body->custom.names});
  start_answer(state, call, plan->generation, {*asked}, std::move(shape));
}

void answer_responses(ApiState& state, const ApiCall& call) {
  auto planned = plan_as_chat(state, call, read_responses_request);
  if (!planned) return;
  auto& [body, request, plan] = *planned;
  const Result<AskedChoices> asked = asked_choices(state, call, plan, request.chat);
  if (!asked.ok()) return refuse(call, asked.status());
  auto shape = make_responses_shape(reply_head(state, "resp_", plan.generation, plan.warnings), body,
                                    std::move(request.renamed));
  start_answer(state, call, plan.generation, {*asked}, std::move(shape));
}

void answer_responses_tokens(ApiState& state, const ApiCall& call) {
  const auto planned = plan_as_chat(state, call, read_responses_request);
  if (planned) send_input_tokens(call, planned->plan);
}

void answer_messages(ApiState& state, const ApiCall& call) {
  auto planned = plan_as_chat(state, call, read_messages_request);
  if (!planned) return;
  auto& [body, request, plan] = *planned;
  std::optional<ClearedContext> cleared = clear_as_asked(state, request, plan);
  if (cleared && cleared->n_too_small > 0) plan.warnings.push_back(too_small_to_clear(*cleared));
  MessagesShapeOptions shape{.head = reply_head(state, "msg_", plan.generation, plan.warnings),
                             .max_tokens = plan.generation.options.max_tokens,
                             .hides_thinking = request.hides_thinking,
                             .cleared = std::move(cleared)};
  if (shape.cleared) plan.cleared = shape.cleared->spans;
  if (request.n_marked) shape.n_marked_tokens = tokens_of_first(state, plan, *request.n_marked);
  const Result<AskedChoices> asked = asked_choices(state, call, plan, request.chat);
  if (!asked.ok()) return refuse(call, asked.status());
  start_answer(state, call, plan.generation, {*asked}, make_messages_shape(std::move(shape)));
}

void answer_messages_tokens(ApiState& state, const ApiCall& call) {
  const auto planned = plan_as_chat(state, call, read_messages_request);
  if (!planned) return;
  const auto n_tokens = std::ssize(planned->plan.tokens);
  Json answer = {{"input_tokens", n_tokens}};
  if (const auto cleared = clear_as_asked(state, planned->request, planned->plan)) {
    answer = {{"input_tokens", n_tokens - cleared->n_tokens()},
              {"context_management", {{"original_input_tokens", n_tokens}}}};
  }
  call.send(json_answer(answer));
}

void answer_chat_input_tokens(ApiState& state, const ApiCall& call) {
  const std::optional<ChatBody> body = read_chat_body(state, call);
  if (!body) return;
  const Result<ChatPlan> plan = plan_chat(state, body->json);
  if (!plan.ok()) return refuse(call, plan.status());
  send_input_tokens(call, *plan);
}

void answer_apply_template(ApiState& state, const ApiCall& call) {
  const std::optional<ChatBody> body = read_chat_body(state, call);
  if (!body) return;
  const Result<ChatRendering> rendering = render_chat(state, body->json);
  if (!rendering.ok()) return refuse(call, rendering.status());
  call.send(json_answer({{"prompt", rendering->prompt.text()}}));
}

}  // namespace ebb
