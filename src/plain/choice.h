// Choice: which blocks a policy, or scores of somebody's own, would let go, from plain arrays.
//
// The same choose as the engine's (policy/choose.h). The question and its answer: docs/policy_abi.md. Thread rule: a pure
// function.
#pragma once

#include <span>

#include "plain/named_arrays.h"

namespace ebb {

// kInvalidArgument names the field or the array.
Result<Json> choose(JsonFields& fields, std::span<const Numbers> arrays);

}  // namespace ebb
