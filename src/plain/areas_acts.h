// Areas acts: one sequence under the areas scheme, step by step, for programs in other languages (docs/policy_abi.md).
//
// What is asked is a stranger's, as in plain/question.h. Thread rule: one thread at a time for a sequence.
#pragma once

#include <span>
#include <string_view>

#include "plain/named_arrays.h"
#include "policy/areas.h"

namespace ebb {

struct PlainAreas {
  AreasSequence sequence;
  bool upstream = false;
  std::int32_t n_batched_tokens = 256;
};

// Of a recording without its steps (docs/policy_replay.md).
Result<PlainAreas> make_areas(std::string_view recording);
// An error leaves it as it was, but for diversity, which is forgotten.
Result<Json> act_on_areas(PlainAreas& areas, std::string_view act, std::span<const Numbers> arrays);

}  // namespace ebb
