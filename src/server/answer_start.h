// What routes with answers share: starting the generations.
//
// Thread rule: functions of their arguments.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/answer.h"
#include "server/api_state.h"
#include "server/generation_request.h"

namespace ebb {

// A head with a new id, for answers to `request`, with its warnings and these.
[[nodiscard]] ReplyHead reply_head(const ApiState& state, std::string_view prefix, const GenerationRequest& request,
                                   std::vector<std::string> warnings);

// What is asked: one prompt, the same for each of n choices.
struct AskedChoices {
  std::string lane_id;
  std::string lane_hint;
  Prompt history;
  GenerationOptions options;
  ResumeOptions resuming;
  ReplyRules rules;
  std::int32_t n = 1;
};
// Refuses a prompt that is too long for the context, and options that the engine does not take; else starts all of
// them, which are the answer's choices in this order. `generation` says how they are sent.
void start_answer(ApiState& state, const ApiCall& call, const GenerationRequest& generation,
                  const std::vector<AskedChoices>& asked, std::unique_ptr<ReplyShape> shape);

}  // namespace ebb
