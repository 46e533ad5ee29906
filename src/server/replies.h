// Replies: the JSON of OpenAI's answers, whole and in chunks, with honest counters (law 7).
//
//   usage    prompt_tokens is the logical prompt; cached_tokens of it were not computed for this request
//   timings  llama.cpp's names; finite for 0 and 1 tokens
//   ebb      ours: where each token of the prompt came from, what left and came back, what is hot
//
// They know shapes, not sockets. Thread rule: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/scheduler.h"
#include "server/fields.h"

namespace ebb {

// What repeats on every chunk of one answer.
struct ReplyHead {
  std::string id;  // "chatcmpl-..." or "cmpl-..."
  std::int64_t created = 0;
  std::string model;
  bool is_chat = true;
};

// `prefix` and 32 random letters and digits.
[[nodiscard]] std::string new_id(std::string_view prefix);
[[nodiscard]] std::string_view finish_name(FinishReason reason);

[[nodiscard]] Json usage_json(const RequestEnd& end, std::int32_t n_prompt);
[[nodiscard]] Json timings_json(const RequestEnd& end, std::int32_t n_prompt);
[[nodiscard]] Json ebb_json(const RequestEnd& end);

[[nodiscard]] Json whole_reply(const ReplyHead& head, const std::string& text, const RequestEnd& end,
                               std::int32_t n_prompt);
// The first chunk of a chat says the role and nothing else.
[[nodiscard]] Json role_chunk(const ReplyHead& head);
[[nodiscard]] Json text_chunk(const ReplyHead& head, std::string_view text);
// With timings and counters where no usage chunk follows.
[[nodiscard]] Json finish_chunk(const ReplyHead& head, const RequestEnd& end, std::optional<std::int32_t> n_prompt);
[[nodiscard]] Json usage_chunk(const ReplyHead& head, const RequestEnd& end, std::int32_t n_prompt);

}  // namespace ebb
