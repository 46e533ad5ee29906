#include "server/replies.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "base/version.h"
#include "server/recall_json.h"
#include "server/sse.h"

namespace ebb {
namespace {

// Tokens of the prompt that the model saw and did not compute: what was computed and left again, and what never came back, is
// none of them.
std::int32_t n_cached(const Choice& choice) {
  const TokenOrigins& from = choice.end->turn.from;
  return from.total() - from.n_computed() - from.n_unseen();
}

// What one choice or several cost.
struct Work {
  std::int32_t n_cached = 0;
  std::int32_t n_computed = 0;  // of the prompt
  std::int32_t n_generated = 0;
  std::int32_t n_behind_first = 0;  // of them: the first costs no step
  double prompt_ms = 0.0;
  double decode_ms = 0.0;

  void add(const GenerationStats& stats) {
    n_generated += stats.n_generated;
    n_behind_first += std::max(0, stats.n_generated - 1);
    decode_ms += stats.decode_ms;
  }
};

double per_second(std::int32_t n, double ms) { return ms > 0.0 ? n * 1000.0 / ms : 0.0; }

Json work_json(const Work& work) {
  return {{"cache_n", work.n_cached},
          {"prompt_n", work.n_computed},
          {"prompt_ms", work.prompt_ms},
          {"prompt_per_token_ms", work.n_computed > 0 ? work.prompt_ms / work.n_computed : 0.0},
          {"prompt_per_second", per_second(work.n_computed, work.prompt_ms)},
          {"predicted_n", work.n_generated},
          {"predicted_ms", work.decode_ms},
          {"predicted_per_token_ms", work.n_behind_first > 0 ? work.decode_ms / work.n_behind_first : 0.0},
          {"predicted_per_second", per_second(work.n_behind_first, work.decode_ms)}};
}

// llama.cpp's names: the draw's are probabilities.
Json chance_json(const Vocabulary& vocabulary, const TokenChance& chance, bool is_of_draw) {
  const std::string text = token_bytes(vocabulary, chance.token);
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  Json json = {{"token", text}, {"bytes", std::move(bytes)}, {"id", chance.token.value()}};
  if (is_of_draw) {
    json["prob"] = std::exp(chance.logprob);
  } else {
    json["logprob"] = chance.logprob;
  }
  return json;
}

}  // namespace

std::string ReplyShape::failure(const ApiError& error) { return sse_event(error_json(error)); }

std::string ReplyShape::progress(const Choice& /*choice*/) { return {}; }

std::string sse_event(const Json& json) {
  std::string bytes;
  append_sse(bytes, json_text(json));
  return bytes;
}

std::string new_id(std::string_view prefix, int n) {
  static constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::string id(prefix);
  for (int i = 0; i < n; ++i) id += kLetters[random() % kLetters.size()];
  return id;
}

bool is_ended_by_context(const Choice& choice, std::int32_t asked_tokens) {
  const RequestEnd& end = *choice.end;
  return end.reason == FinishReason::kLength && (asked_tokens < 0 || end.stats.n_generated < asked_tokens);
}

std::string_view finish_name(const Choice& choice) {
  const FinishReason reason = choice.end->reason;
  if (reason != FinishReason::kEndOfGeneration && reason != FinishReason::kStopString) return "length";
  return choice.reply.calls.empty() ? "stop" : "tool_calls";
}

UsageTotals usage_totals(std::span<const Choice> choices) {
  UsageTotals totals;
  for (const Choice& choice : choices) {
    totals.n_generated += choice.end->stats.n_generated;
    totals.n_thinking += choice.end->stats.n_thinking;
    if (!choice.is_first_of_prompt) continue;
    totals.n_prompt += choice.n_prompt;
    totals.n_cached += n_cached(choice);
    totals.n_cleared += choice.end->turn.from[Origin::kCleared];
  }
  return totals;
}

Json usage_json(std::span<const Choice> choices) {
  const UsageTotals totals = usage_totals(choices);
  return {{"prompt_tokens", totals.n_prompt},
          {"completion_tokens", totals.n_generated},
          {"total_tokens", totals.n_prompt + totals.n_generated},
          {"prompt_tokens_details", {{"cached_tokens", totals.n_cached}}},
          {"completion_tokens_details", {{"reasoning_tokens", totals.n_thinking}}}};
}

Json timings_json(std::span<const Choice> choices) {
  const UsageTotals totals = usage_totals(choices);
  Work work{.n_cached = totals.n_cached};
  for (const Choice& choice : choices) {
    work.add(choice.end->stats);
    if (!choice.is_first_of_prompt) continue;
    work.n_computed += choice.end->turn.n_computed;
    work.prompt_ms += choice.end->stats.prefill_ms;
  }
  return work_json(work);
}

Json progress_json(const RequestProgress& progress) {
  return {{"total", progress.n_prompt},
          {"cache", progress.n_cached},
          {"processed", progress.n_done},
          {"time_ms", static_cast<std::int64_t>(progress.elapsed_ms)}};
}

Json timings_so_far_json(const Choice& choice) {
  const RequestProgress& progress = *choice.progress;
  Work work{.n_cached = progress.n_cached, .n_computed = progress.n_computed, .prompt_ms = progress.stats.prefill_ms};
  work.add(progress.stats);
  return work_json(work);
}

Json ebb_json(const ReplyHead& head, std::span<const Choice> choices) {
  const auto sum = [&](auto member) {
    std::int64_t total = 0;
    for (const Choice& choice : choices) total += static_cast<std::int64_t>(member(*choice.end));
    return total;
  };
  TokenOriginSums from;
  double recall_ms = 0.0;
  double writing_ms = 0.0;
  double queued_ms = 0.0;
  for (const Choice& choice : choices) {
    from += choice.end->turn.from;
    recall_ms += choice.end->turn.acts.recall_ms;
    writing_ms += choice.end->turn.writing.ms;
    queued_ms = std::max(queued_ms, choice.end->queued_ms);
  }
  Json prompt;
  for (const OriginName& name : kOriginNames) prompt[std::string(name.name)] = from[name.origin];
  Json json = {{"prompt", std::move(prompt)},
               {"evicted_blocks", sum([](const RequestEnd& end) { return end.turn.acts.evicted.size(); })},
               {"recalled_blocks", sum([](const RequestEnd& end) {
                  return end.turn.acts.recalled.size() + end.turn.acts.adopted.size();
                })},
               {"recall_ms", recall_ms},
               {"hot_tokens", sum([](const RequestEnd& end) { return end.n_hot_tokens; })},
               {"budget_tokens", sum([](const RequestEnd& end) { return end.budget_tokens; })},
               {"kv_eviction", choices.front().end->policy},
               {"kv_sparse_prompt", choices.front().end->sparse_prompt},
               {"prompt_budget_tokens", sum([](const RequestEnd& end) { return end.prompt.budget; })},
               {"prompt_peak_tokens", sum([](const RequestEnd& end) { return end.prompt.peak; })},
               {"reply_budget_tokens", sum([](const RequestEnd& end) { return end.reply.budget; })},
               {"reply_peak_tokens", sum([](const RequestEnd& end) { return end.reply.peak; })},
               {"queued_ms", queued_ms}};
  json["late_recalls"] = sum([](const RequestEnd& end) { return end.turn.n_late; });
  json["cleared_in_sight"] = sum([](const RequestEnd& end) { return end.turn.n_cleared_back; });
  json["computed_again"] = sum([](const RequestEnd& end) { return end.turn.n_computed_again; });
  json["renewed"] = sum([](const RequestEnd& end) { return end.turn.n_renewed; });
  json["while_writing"] = {{"looks", sum([](const RequestEnd& end) { return end.turn.writing.n; })},
                           {"found", sum([](const RequestEnd& end) { return end.turn.writing.n_found; })},
                           {"ms", writing_ms}};
  json["recall"] = recall_json(choices.front().end->turn.looks, head.explains_recall);
  std::vector<std::string> warnings = head.warnings;
  for (const Choice& choice : choices) {
    if (!choice.end->warning.empty()) warnings.push_back(choice.end->warning);
  }
  if (const RequestEnd& first = *choices.front().end; first.turn.n_instruction_holes > 0) {
    warnings.push_back(
        fmt::format("{} tokens of the system text and tools are not in sight: the KV budget of {} tokens is too small "
                    "for them; raise "
                    "--kv-budget, or pin them",
                    first.turn.n_instruction_holes, first.budget_tokens));
  }
  if (!warnings.empty()) json["warnings"] = warnings;
  return json;
}

Json reply_shell(const ReplyHead& head, std::string_view object) {
  return {{"id", head.id},
          {"object", object},
          {"created", head.created},
          {"model", head.model},
          {"system_fingerprint", fmt::format("ebb-{}", kVersion)},
          {"choices", Json::array()}};
}

std::string token_bytes(const Vocabulary& vocabulary, Token token) {
  const Result<std::string> piece = vocabulary.piece(token, SpecialTokens::kShow);
  return piece.ok() ? *piece : std::string();
}

Json take_logprobs(Choice& choice, const Vocabulary& vocabulary) {
  if (choice.chances.empty()) return nullptr;
  Json content = Json::array();
  for (const TokenChances& chances : std::exchange(choice.chances, {})) {
    Json token = chance_json(vocabulary, chances.kept, chances.is_of_draw);
    Json& top = token[chances.is_of_draw ? "top_probs" : "top_logprobs"] = Json::array();
    for (const TokenChance& chance : chances.likeliest) {
      top.push_back(chance_json(vocabulary, chance, chances.is_of_draw));
    }
    content.push_back(std::move(token));
  }
  return {{"content", std::move(content)}};
}

}  // namespace ebb
