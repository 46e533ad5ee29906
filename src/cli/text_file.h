// Whole texts from files and from standard input.
#pragma once

#include <string>

#include "base/status.h"

namespace ebb {

// "-" reads standard input to its end. kNotFound or kIo name the file.
Result<std::string> read_text(const std::string& path);

}  // namespace ebb
