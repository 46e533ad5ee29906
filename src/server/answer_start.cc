#include "server/answer_start.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "server/replies.h"

namespace ebb {
namespace {

// Clients compact when they read "exceeds the available context size", or this code.
std::optional<ApiError> context_error(const ApiState& state, std::int32_t n_tokens) {
  const bool has_end = state.options.window_tokens > 0 || !state.engine.session_options().rebases;
  const std::int32_t most = state.options.most_prompt_tokens;
  const std::int32_t n_ctx = has_end ? std::min(state.window_tokens(), most) : most;
  if (n_tokens < n_ctx) return std::nullopt;
  // The window is larger, or there is none: what holds is a bound of its own.
  const bool is_bound_of_prompts = n_ctx == most && (!has_end || most < state.window_tokens());
  return ApiError{.type = "exceed_context_size_error",
                  .message = fmt::format("request ({} tokens) exceeds the available context size ({} tokens{}), try "
                                         "increasing it",
                                         n_tokens, n_ctx, is_bound_of_prompts ? " of a prompt, --max-prompt" : ""),
                  .more = {{"code", "context_length_exceeded"}, {"n_prompt_tokens", n_tokens}, {"n_ctx", n_ctx}}};
}

// A reply ends where the window does.
std::int32_t most_reply_tokens(const ApiState& state, std::int32_t n_prompt, std::int32_t asked) {
  if (state.options.window_tokens == 0) return asked;
  const std::int32_t n_left = state.options.window_tokens - n_prompt;
  return asked < 0 ? n_left : std::min(asked, n_left);
}

// A lane of its own for each choice: they go on from the same history.
std::string choice_lane(const std::string& lane_id, std::size_t choice) {
  return lane_id.empty() || choice == 0 ? lane_id : fmt::format("{}~choice-{}", lane_id, choice);
}

}  // namespace

ReplyHead reply_head(const ApiState& state, std::string_view prefix, const GenerationRequest& request,
                     std::vector<std::string> warnings) {
  warnings.insert(warnings.begin(), request.warnings.begin(), request.warnings.end());
  state.losses.note(warnings);
  return {.id = new_id(prefix),
          .created = std::time(nullptr),
          .model = state.options.model_name,
          .warnings = std::move(warnings),
          .tells_progress = request.tells_progress,
          .tells_timings = request.tells_timings,
          .explains_recall = request.explains_recall};
}

void start_answer(ApiState& state, const ApiCall& call, const GenerationRequest& generation,
                  const std::vector<AskedChoices>& asked, std::unique_ptr<ReplyShape> shape) {
  std::vector<AnswerPart> parts;
  for (const AskedChoices& choices : asked) {
    if (const auto too_long = context_error(state, choices.history.n_tokens())) return call.refuse(*too_long);
    for (std::int32_t i = 0; i < choices.n; ++i) {
      AnswerPart part{.request = {.owner = call.owner,
                                  .lane_id = choice_lane(choices.lane_id, parts.size()),
                                  .lane_hint = choices.lane_hint,
                                  .history = choices.history,
                                  .options = choices.options,
                                  .resuming = choices.resuming,
                                  .policy = generation.policy,
                                  .prompt_budget_tokens = generation.prompt_budget_tokens,
                                  .sparse_prompt = generation.sparse_prompt},
                      .rules = choices.rules,
                      .is_first_of_prompt = i == 0};
      part.request.options.max_tokens =
          most_reply_tokens(state, choices.history.n_tokens(), choices.options.max_tokens);
      part.request.options.recall.max_blocks =
          generation.n_recalled_blocks ? generation.n_recalled_blocks : state.options.n_recalled_blocks;
      part.request.options.recall.selectors = generation.selectors.value_or(state.options.selectors);
      part.request.options.recall.most_ms = generation.most_recall_ms.value_or(state.options.most_recall_ms);
      // The same seed would make the same choice again.
      std::optional<std::uint32_t>& seed = part.request.options.sampling.seed;
      if (seed) *seed += static_cast<std::uint32_t>(i);
      // Here and not where generations run: a grammar takes its time. And before the first byte, when it can be refused.
      Result<Writer> writer = Writer::create(state.engine.vocabulary(), part.request.options);
      if (!writer.ok()) return refuse(call, writer.status());
      part.request.writer = *std::move(writer);
      parts.push_back(std::move(part));
    }
  }
  const AnswerOptions options{.stream = generation.stream,
                              .ping_after = generation.ping_after.value_or(state.options.ping_after),
                              .headers = call.headers};
  std::make_shared<Answer>(options, std::move(shape), call.responder)->send(state.scheduler, std::move(parts));
}

}  // namespace ebb
