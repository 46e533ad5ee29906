#include "server/replies.h"

#include <algorithm>
#include <random>

#include "base/version.h"

namespace ebb {
namespace {

Json shell(const ReplyHead& head, std::string_view object) {
  return {{"id", head.id},
          {"object", object},
          {"created", head.created},
          {"model", head.model},
          {"system_fingerprint", fmt::format("ebb-{}", kVersion)},
          {"choices", Json::array()}};
}

Json chunk(const ReplyHead& head) { return shell(head, head.is_chat ? "chat.completion.chunk" : "text_completion"); }

Json delta_chunk(const ReplyHead& head, const Json& delta, const Json& reason) {
  Json json = chunk(head);
  json["choices"].push_back({{"index", 0}, {"delta", delta}, {"logprobs", nullptr}, {"finish_reason", reason}});
  return json;
}

Json part_chunk(const ReplyHead& head, std::string_view text, const Json& reason) {
  Json json = chunk(head);
  json["choices"].push_back({{"index", 0}, {"text", text}, {"logprobs", nullptr}, {"finish_reason", reason}});
  return json;
}

std::int32_t n_computed(const RequestEnd& end) { return end.turn.n_new + end.turn.n_recomputed; }

double per_second(std::int32_t n, double ms) { return ms > 0.0 ? n * 1000.0 / ms : 0.0; }

}  // namespace

std::string new_id(std::string_view prefix) {
  static constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::string id(prefix);
  for (int i = 0; i < 32; ++i) id += kLetters[random() % kLetters.size()];
  return id;
}

std::string_view finish_name(FinishReason reason) {
  return reason == FinishReason::kEndOfGeneration || reason == FinishReason::kStopString ? "stop" : "length";
}

Json usage_json(const RequestEnd& end, std::int32_t n_prompt) {
  const std::int32_t n_generated = end.stats.n_generated;
  return {{"prompt_tokens", n_prompt},
          {"completion_tokens", n_generated},
          {"total_tokens", n_prompt + n_generated},
          {"prompt_tokens_details", {{"cached_tokens", std::max(0, n_prompt - n_computed(end))}}},
          {"completion_tokens_details", {{"reasoning_tokens", 0}}}};
}

Json timings_json(const RequestEnd& end, std::int32_t n_prompt) {
  const std::int32_t n_prompt_computed = std::min(n_prompt, n_computed(end));
  const std::int32_t n_behind_first = std::max(0, end.stats.n_generated - 1);
  const double prompt_ms = end.stats.prefill_ms;
  const double decode_ms = end.stats.decode_ms;
  return {{"cache_n", n_prompt - n_prompt_computed},
          {"prompt_n", n_prompt_computed},
          {"prompt_ms", prompt_ms},
          {"prompt_per_token_ms", n_prompt_computed > 0 ? prompt_ms / n_prompt_computed : 0.0},
          {"prompt_per_second", per_second(n_prompt_computed, prompt_ms)},
          {"predicted_n", end.stats.n_generated},
          {"predicted_ms", decode_ms},
          {"predicted_per_token_ms", n_behind_first > 0 ? decode_ms / n_behind_first : 0.0},
          {"predicted_per_second", per_second(n_behind_first, decode_ms)}};
}

Json ebb_json(const RequestEnd& end) {
  return {{"prompt",
           {{"hot", end.turn.n_hot_already},
            {"shared", end.turn.n_shared},
            {"recalled_exact", end.turn.n_recalled_exact},
            {"recalled_approximate", end.turn.n_recalled_approximate},
            {"recomputed", end.turn.n_recomputed},
            {"new", end.turn.n_new},
            {"holes", end.turn.n_holes}}},
          {"evicted_blocks", end.turn.evicted.size()},
          {"recalled_blocks", end.turn.recalled.size() + end.turn.adopted.size()},
          {"recall_ms", end.turn.recall_ms},
          {"hot_tokens", end.n_hot_tokens},
          {"budget_tokens", end.budget_tokens},
          {"queued_ms", end.queued_ms}};
}

Json whole_reply(const ReplyHead& head, const std::string& text, const RequestEnd& end, std::int32_t n_prompt) {
  Json json = shell(head, head.is_chat ? "chat.completion" : "text_completion");
  Json choice = {{"index", 0}};
  if (head.is_chat) {
    choice["message"] = {{"role", "assistant"}, {"content", text}};
  } else {
    choice["text"] = text;
  }
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = finish_name(end.reason);
  json["choices"].push_back(std::move(choice));
  json["usage"] = usage_json(end, n_prompt);
  json["timings"] = timings_json(end, n_prompt);
  json["ebb"] = ebb_json(end);
  return json;
}

Json role_chunk(const ReplyHead& head) {
  return delta_chunk(head, {{"role", "assistant"}, {"content", nullptr}}, nullptr);
}

Json text_chunk(const ReplyHead& head, std::string_view text) {
  return head.is_chat ? delta_chunk(head, {{"content", text}}, nullptr) : part_chunk(head, text, nullptr);
}

Json finish_chunk(const ReplyHead& head, const RequestEnd& end, std::optional<std::int32_t> n_prompt) {
  const std::string_view reason = finish_name(end.reason);
  Json json = head.is_chat ? delta_chunk(head, Json::object(), reason) : part_chunk(head, "", reason);
  if (n_prompt) {
    json["timings"] = timings_json(end, *n_prompt);
    json["ebb"] = ebb_json(end);
  }
  return json;
}

Json usage_chunk(const ReplyHead& head, const RequestEnd& end, std::int32_t n_prompt) {
  Json json = chunk(head);
  json["usage"] = usage_json(end, n_prompt);
  json["timings"] = timings_json(end, n_prompt);
  json["ebb"] = ebb_json(end);
  return json;
}

}  // namespace ebb
