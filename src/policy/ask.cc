#include "policy/policy.h"

namespace ebb {

Status Ask::check_slice(std::int32_t grain) const {
  if (slice <= 0 || slice >= grain || grain % slice == 0) return {};
  return error(Code::kInvalidArgument,
               "slices of {} tokens do not fill blocks of {}: give a slice that divides the block (--block-size), or "
               "slice=0, which looks at whole blocks",
               slice, grain);
}

}  // namespace ebb
