// What frees the blocks that the areas scheme evicted may rely on, checked: every layer gives back equally many.
//
// A pool that reserves a block of every layer together gets them back together: the k-th victims of all layers make one group.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace ebb {

// By group, the number of the block in each layer's table. `victims`: by layer, ascending. kInvalidArgument: another number of
// layers, sets of unequal size, numbers beyond the table, or not ascending.
Result<std::vector<std::vector<std::int32_t>>> group_victims(std::span<const std::vector<std::int32_t>> victims,
                                                             std::int32_t n_layers, std::int32_t n_blocks);

// After a group was given back: how many still hold each of its blocks, by layer. kInvalidArgument where some are free and
// others not, since what is reserved together is free together.
Status check_group_released(std::span<const std::int32_t> n_holders);

// How many blocks each sequence of a group (beams, parallel samples) evicted in one pass: one count for all.
Status check_equal_victims(std::span<const std::int32_t> n_victims);

}  // namespace ebb
