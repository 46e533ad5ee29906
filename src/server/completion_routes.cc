// Completions of texts: OpenAI's, and llama.cpp's own, which also fills in the middle of one.
#include "server/answer_start.h"
#include "server/infill_prompt.h"
#include "server/lane_id.h"
#include "server/native_shape.h"
#include "server/replies.h"
#include "server/text_plan.h"
#include "server/text_shape.h"

namespace ebb {
namespace {

constexpr std::size_t kMostResponseFields = 64;
// GenerationOptions::n_chances: which tokens came, without what they cost to know of.
constexpr std::int32_t kTokensAlone = -1;

std::vector<AskedChoices> asked_choices(const TextPlan& plan, const ApiCall& call, const Json& body) {
  std::string lane_id = client_session_id(call.request, body);
  if (!lane_id.empty()) lane_id += "~text";
  std::vector<AskedChoices> asked;
  for (const TextPrompt& prompt : plan.prompts) {
    AskedChoices choices{.lane_id = lane_id,
                         .lane_hint = lane_hint(body),
                         .history = prompt.said,
                         .options = plan.generation.options,
                         .resuming = plan.generation.resuming,
                         .rules = {.reasoning = ReasoningFormat::kNone, .think = std::nullopt},
                         .n = plan.generation.n_choices};
    choices.options.recall.cues = prompt.cues;
    asked.push_back(std::move(choices));
  }
  return asked;
}

// Answers the request in llama.cpp's own shape.
void send_native(ApiState& state, const ApiCall& call, const Json& body) {
  JsonFields fields(body);
  std::vector<std::string> response_fields = fields.texts("response_fields", kMostResponseFields);
  if (!fields.status().ok()) return refuse(call, fields.status());
  Result<TextPlan> plan = plan_text(state, body);
  if (!plan.ok()) return refuse(call, plan.status());
  warn_of_reuse(client_session_id(call.request, body), plan->generation.resuming.reuse, plan->warnings);
  const Vocabulary& vocabulary = state.engine.vocabulary();
  NativeShapeOptions shape{.head = reply_head(state, "cmpl-", plan->generation, plan->warnings),
                           .generation = plan->generation,
                           .response_fields = std::move(response_fields)};
  const bool tells_tokens = plan->generation.returns_tokens || plan->generation.stream;
  if (tells_tokens && !plan->generation.options.n_chances) plan->generation.options.n_chances = kTokensAlone;
  for (const TextPrompt& prompt : plan->prompts) {
    const Result<std::string> text = vocabulary.detokenize(prompt.said.tokens(), SpecialTokens::kShow);
    if (!text.ok()) return refuse(call, text.status());
    shape.prompts.insert(shape.prompts.end(), static_cast<std::size_t>(plan->generation.n_choices), *text);
  }
  start_answer(state, call, plan->generation, asked_choices(*plan, call, body),
               make_native_shape(vocabulary, std::move(shape)));
}

}  // namespace

void answer_completion(ApiState& state, const ApiCall& call) {
  const std::optional<Json> body = read_request(state, call);
  if (!body) return;
  Result<TextPlan> plan = plan_text(state, *body);
  if (!plan.ok()) return refuse(call, plan.status());
  warn_of_tokens(plan->generation, plan->warnings);
  warn_of_reuse(client_session_id(call.request, *body), plan->generation.resuming.reuse, plan->warnings);
  start_answer(state, call, plan->generation, asked_choices(*plan, call, *body),
               make_text_shape(state.engine.vocabulary(), reply_head(state, "cmpl-", plan->generation, plan->warnings),
                               plan->generation.include_usage));
}

void answer_native_completion(ApiState& state, const ApiCall& call) {
  const std::optional<Json> body = read_request(state, call);
  if (body) send_native(state, call, *body);
}

void answer_infill(ApiState& state, const ApiCall& call) {
  std::optional<Json> body = read_request(state, call);
  if (!body) return;
  const Vocabulary& vocabulary = state.engine.vocabulary();
  const FillTokens marks = find_fill_tokens(vocabulary);
  if (const Status status = check_fill_tokens(marks); !status.ok()) {
    return call.refuse({.status = 501, .type = "not_supported_error", .message = status.message()});
  }
  const Result<std::vector<Token>> prompt = infill_prompt(vocabulary, marks, *body);
  if (!prompt.ok()) return refuse(call, prompt.status());
  Json& ids = (*body)["prompt"] = Json::array();
  for (const Token token : *prompt) ids.push_back(token.value());
  send_native(state, call, *body);
}

}  // namespace ebb
