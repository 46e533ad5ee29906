// The small model that comes with ebb, for commands that were given none.
#pragma once

#include <filesystem>
#include <string>

#include "base/status.h"

namespace ebb {

// `given` if it is not empty; else the bundled model: from share/ebb beside an installed program, or models/ of the
// source tree. kNotFound says what to do.
Result<std::filesystem::path> given_or_bundled_model(const std::string& given);

}  // namespace ebb
