#include "engine/public_error.h"

namespace ebb::api {

Error to_error(const Status& status) {
  switch (status.code()) {
    case ebb::Code::kOk:
    case ebb::Code::kInvalidArgument: return {Code::kInvalidArgument, status.message()};
    case ebb::Code::kNotFound: return {Code::kNotFound, status.message()};
    case ebb::Code::kDamaged: return {Code::kDamaged, status.message()};
    case ebb::Code::kUnsupported: return {Code::kUnsupported, status.message()};
    case ebb::Code::kOutOfBudget: return {Code::kOutOfBudget, status.message()};
    case ebb::Code::kIo: return {Code::kIo, status.message()};
    case ebb::Code::kCancelled: return {Code::kCancelled, status.message()};
  }
  return {};
}

}  // namespace ebb::api
