// Generation requests: the members that all routes with answers share (docs/http_api.md), from JSON to options.
//
// Thread rule: functions of their arguments.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/generation.h"
#include "json/json_fields.h"
#include "policy/offered.h"
#include "policy/sparse_prompt.h"

namespace ebb {

struct GenerationRequest {
  GenerationOptions options;
  ResumeOptions resuming;
  // Chooses what leaves; null: the request does not say.
  std::shared_ptr<const Policy> policy = nullptr;
  // While its prompt is computed; none: the request does not say.
  std::optional<std::int32_t> prompt_budget_tokens = std::nullopt;
  // How its prompt is read; none: the request does not say.
  std::optional<SparsePrompt> sparse_prompt = std::nullopt;
  // The most blocks that come back for what it asks, and who chooses them; none: the request does not say.
  std::optional<std::int32_t> n_recalled_blocks = std::nullopt;
  std::optional<SelectorList> selectors = std::nullopt;
  // RecallAsk::most_ms.
  std::optional<double> most_recall_ms = std::nullopt;
  // ReplyHead::explains_recall.
  bool explains_recall = false;
  std::int32_t n_choices = 1;
  bool stream = false;
  bool include_usage = false;
  // The answer's tokens are told, where its shape has a place for them.
  bool returns_tokens = false;
  // What a stream tells (ReplyHead).
  bool tells_progress = false;
  bool tells_timings = false;
  // The silence of a stream that gets a comment, where the request says; 0: none does.
  std::optional<std::chrono::milliseconds> ping_after = std::nullopt;
  // What was asked for and is not done, in words.
  std::vector<std::string> warnings = {};
};

// Counts outside their range are refused, continuous parameters are clamped. kInvalidArgument names the field. Without
// what only some routes take: chances, thinking. `resuming`: what holds where the body does not say.
struct GenerationLimits {
  std::int32_t max_choices = 1;
  // Tokens that prompts may have at once; 0: no more than replies.
  std::int32_t prompt_budget_tokens = 0;
  const OfferedPolicies& policies;
  // What is wrong with a way of reading prompts, here.
  std::function<Status(const SparsePrompt&)> check_sparse_prompt;
  // What is wrong with selectors, here.
  std::function<Status(const SelectorList&)> check_selectors = [](const SelectorList&) { return Status(); };
};
Result<GenerationRequest> parse_generation_request(const Json& body, const Vocabulary& vocabulary,
                                                   const GenerationLimits& limits, const ResumeOptions& resuming);
// The policy that the member `name` asks for; null where it is absent or empty. Else an error of `fields`.
[[nodiscard]] std::shared_ptr<const Policy> read_policy(JsonFields& fields, std::string_view name,
                                                        const OfferedPolicies& policies);

// Warns of tokens asked of routes whose answers have no place for them.
void warn_of_tokens(const GenerationRequest& request, std::vector<std::string>& warnings);

// Chat's logprobs and top_logprobs.
Result<std::optional<std::int32_t>> parse_chat_logprobs(const Json& body);
// The count that text completions take: "logprobs", or "n_probs" of llama.cpp.
Result<std::optional<std::int32_t>> parse_text_logprobs(const Json& body);

}  // namespace ebb
