// Questions: what programs in other languages ask of the policies (docs/policy_abi.md).
//
// The text and the arrays are a stranger's: whatever they hold, there is an answer or a refusal that says why. Thread rule:
// pure functions.
#pragma once

#include <span>
#include <string_view>

#include "plain/named_arrays.h"
#include "policy/rotation.h"

namespace ebb {

// Values and names of members that a question may have; what is large comes in arrays.
inline constexpr std::size_t kMostQuestionValues = std::size_t{1} << 16;

[[nodiscard]] Json shifts_json(std::span<const BlockShift> shifts);

Result<Json> answer_question(std::string_view question, std::span<const Numbers> arrays);

}  // namespace ebb
