// TextPlan: what a text completion asks for: prompts, and how their continuations are generated.
//
// Thread rule: values.
#pragma once

#include <string>
#include <vector>

#include "server/api_state.h"
#include "server/generation_request.h"

namespace ebb {

struct TextPrompt {
  Prompt said;
  // What cold blocks are recalled for: its first and last words.
  std::vector<Cue> cues = {};
};

struct TextPlan {
  // One or more; with n choices each, no more than may wait at once.
  std::vector<TextPrompt> prompts = {};
  GenerationRequest generation = {};
  std::vector<std::string> warnings = {};
};

// kInvalidArgument names the field.
Result<TextPlan> plan_text(const ApiState& state, const Json& body);

}  // namespace ebb
