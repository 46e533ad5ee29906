// Caught: what was thrown, as a Status, for rooms that must go on whatever happened on the way: memory ran short.
//
// Thread rule: where an exception is being handled.
#pragma once

#include <string_view>

#include "base/status.h"

namespace ebb {

// kOutOfBudget where memory was short, else kIo. `doing` says what broke off: "a step was computed".
[[nodiscard]] Status caught(std::string_view doing);

}  // namespace ebb
