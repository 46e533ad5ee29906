// choose: which blocks leave, from a policy's scores and a need. A pure function; it moves nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/policy.h"

namespace ebb {

// The blocks of the lowest scores, lowest first, that are not pinned: n_blocks of them, or all there are.
[[nodiscard]] std::vector<BlockIndex> choose_victims(const Policy& policy, const Evidence& evidence,
                                                     std::int32_t n_blocks);

}  // namespace ebb
