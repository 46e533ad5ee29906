// keep_share: the fewest of some weights that have a share of their sum.
//
// It knows no attention: who chooses blocks of keys for a row of queries asks it, in the model and in plain numbers alike. Thread
// rule: a pure function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ebb {

// Numbers of weights, ascending: the first and the last in any case, then the largest of the others, ties to the lower number,
// until those kept have `share` of the sum; the one that crosses it is kept. Weights are finite and not negative.
[[nodiscard]] std::vector<std::int32_t> keep_share(std::span<const double> weights, double share);

}  // namespace ebb
