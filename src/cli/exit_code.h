// How ebb ends, for scripts. --help documents these.
#pragma once

#include "base/status.h"

namespace ebb {

enum class ExitCode : int {
  kOk = 0,
  kFailed = 1,        // something went wrong while running
  kBadUsage = 2,      // flags or values that have no meaning
  kInterrupted = 130  // Ctrl-C; what a shell reports for SIGINT
};

[[nodiscard]] constexpr ExitCode exit_code_of(Code code) {
  switch (code) {
    case Code::kOk: return ExitCode::kOk;
    case Code::kInvalidArgument: return ExitCode::kBadUsage;
    case Code::kCancelled: return ExitCode::kInterrupted;
    default: return ExitCode::kFailed;
  }
}

}  // namespace ebb
