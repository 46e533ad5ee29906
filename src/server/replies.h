// Replies: the parts of an answer's JSON that all routes share, with honest counters (law 7).
//
//   usage    prompt_tokens is the whole prompt as it is held, once for all choices; cached_tokens of it were seen and not
//            computed
//   timings  llama.cpp's names; finite for 0 and 1 tokens
//   ebb      ours: where each token of the prompts came from, summed over all choices; what left and came back, what is hot
//
// They know shapes, not sockets. Thread rule: values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/reply_shape.h"
#include "text/vocabulary.h"

namespace ebb {

// `prefix` and `n` random letters and digits.
[[nodiscard]] std::string new_id(std::string_view prefix, int n = 32);
[[nodiscard]] std::string_view finish_name(const Choice& choice);
// Whether a reply ended for want of room, and not with the last of the tokens that were asked for at most; -1: no bound.
[[nodiscard]] bool is_ended_by_context(const Choice& choice, std::int32_t asked_tokens);

struct UsageTotals {
  std::int32_t n_prompt = 0;
  std::int32_t n_cached = 0;
  std::int32_t n_cleared = 0;  // not in sight, since the client cleared it
  std::int32_t n_generated = 0;
  std::int32_t n_thinking = 0;
};
[[nodiscard]] UsageTotals usage_totals(std::span<const Choice> choices);

[[nodiscard]] Json usage_json(std::span<const Choice> choices);
[[nodiscard]] Json timings_json(std::span<const Choice> choices);
// llama.cpp's prompt_progress: what it calls processed is what was cached and what was computed.
[[nodiscard]] Json progress_json(const RequestProgress& progress);
// timings of one choice by itself, so far.
[[nodiscard]] Json timings_so_far_json(const Choice& choice);
[[nodiscard]] Json ebb_json(const ReplyHead& head, std::span<const Choice> choices);

// What every reply and every chunk begins with.
[[nodiscard]] Json reply_shell(const ReplyHead& head, std::string_view object);

// {"content": [...]} as chat completions have it; takes the choice's chances. Null when there are none.
[[nodiscard]] Json take_logprobs(Choice& choice, const Vocabulary& vocabulary);
// A token as text that is always UTF-8, and its bytes.
[[nodiscard]] std::string token_bytes(const Vocabulary& vocabulary, Token token);

[[nodiscard]] std::string sse_event(const Json& json);

}  // namespace ebb
