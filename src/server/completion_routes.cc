// Completions of texts: OpenAI's, and llama.cpp's own.
#include "server/answer_start.h"
#include "server/lane_id.h"
#include "server/native_shape.h"
#include "server/replies.h"
#include "server/text_plan.h"
#include "server/text_shape.h"

namespace ebb {
namespace {

constexpr std::size_t kMostResponseFields = 64;

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

}  // namespace

void answer_completion(ApiState& state, const ApiCall& call) {
  const std::optional<Json> body = read_request(state, call);
  if (!body) return;
  Result<TextPlan> plan = plan_text(state, *body);
  if (!plan.ok()) return refuse(call, plan.status());
  warn_of_tokens(plan->generation, plan->warnings);
  start_answer(state, call, plan->generation, asked_choices(*plan, call, *body),
               make_text_shape(state.engine.vocabulary(), reply_head(state, "cmpl-", plan->generation, plan->warnings),
                               plan->generation.include_usage));
}

void answer_native_completion(ApiState& state, const ApiCall& call) {
  const std::optional<Json> body = read_request(state, call);
  if (!body) return;
  JsonFields fields(*body);
  std::vector<std::string> response_fields = fields.texts("response_fields", kMostResponseFields);
  if (!fields.status().ok()) return refuse(call, fields.status());
  Result<TextPlan> plan = plan_text(state, *body);
  if (!plan.ok()) return refuse(call, plan.status());
  const Vocabulary& vocabulary = state.engine.vocabulary();
  NativeShapeOptions shape{.head = reply_head(state, "cmpl-", plan->generation, plan->warnings),
                           .generation = plan->generation,
                           .response_fields = std::move(response_fields)};
  if (plan->generation.returns_tokens && !plan->generation.options.n_chances) plan->generation.options.n_chances = 0;
  for (const TextPrompt& prompt : plan->prompts) {
    const Result<std::string> text = vocabulary.detokenize(prompt.said.tokens(), SpecialTokens::kShow);
    if (!text.ok()) return refuse(call, text.status());
    shape.prompts.insert(shape.prompts.end(), static_cast<std::size_t>(plan->generation.n_choices), *text);
  }
  start_answer(state, call, plan->generation, asked_choices(*plan, call, *body),
               make_native_shape(vocabulary, std::move(shape)));
}

}  // namespace ebb
