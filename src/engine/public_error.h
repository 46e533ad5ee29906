// How a Status leaves through the public API. Thread rule: a pure function.
#pragma once

#include "base/status.h"
#include "ebb/result.h"

namespace ebb::api {

[[nodiscard]] Error to_error(const Status& status);

}  // namespace ebb::api
