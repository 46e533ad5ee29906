// Whole texts from files and from standard input.
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"

namespace ebb {

// "-" reads standard input to its end. kNotFound or kIo name the file.
Result<std::string> read_text(const std::string& path);
// The same; kInvalidArgument for more than `most_bytes`, of which no more are read.
Result<std::string> read_text(const std::string& path, std::size_t most_bytes);

}  // namespace ebb
