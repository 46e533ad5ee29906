#include "base/status.h"

namespace ebb {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInvalidArgument: return "invalid argument";
    case Code::kNotFound: return "not found";
    case Code::kDamaged: return "damaged";
    case Code::kUnsupported: return "unsupported";
    case Code::kOutOfBudget: return "out of budget";
    case Code::kIo: return "input/output error";
    case Code::kCancelled: return "cancelled";
  }
  return "unknown";
}

}  // namespace ebb
