// Infill prompts: what stands before and behind a place, and other files, as a model of code was trained to be asked for
// what stands there; token for token as llama.cpp's server asks, but for what that cuts off.
//
//   [repository]myproject  [file]NAME TEXT ...  [file]filename  [prefix]BEFORE PROMPT  [suffix]BEHIND  [middle]
//
// Marks that the vocabulary has not are left out; other texts are then parted by a line. Text is never read as a mark.
// Thread rule: functions of their arguments.
#pragma once

#include <vector>

#include "json/json_fields.h"
#include "text/fill_tokens.h"

namespace ebb {

// kUnsupported where the model has not the marks, and says which.
[[nodiscard]] Status check_fill_tokens(const FillTokens& marks);

// Of `input_prefix`, `input_suffix`, `prompt` and `input_extra`; `marks` have passed check_fill_tokens. kInvalidArgument
// names the field.
[[nodiscard]] Result<std::vector<Token>> infill_prompt(const Vocabulary& vocabulary, const FillTokens& marks,
                                                       const Json& body);

}  // namespace ebb
