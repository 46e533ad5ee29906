// Observation: attention weights that were recorded over a full cache, as the evidence that a policy asks for.
//
// It notes them as a session does (policy/attention_notes.h), step by step, so that what a policy sees of a recording is what
// the engine would have shown it. The question and its answer: docs/policy_abi.md. Thread rule: a pure function.
#pragma once

#include <span>

#include "plain/named_arrays.h"

namespace ebb {

// kInvalidArgument names the field or the array.
Result<Json> observe(JsonFields& fields, std::span<const Numbers> arrays);

}  // namespace ebb
