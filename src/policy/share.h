// share: a number of frames shared out by weights, exactly. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ebb {

// Shares of `total` in proportion to `weights`, none above its cap and none below its floor (empty: 0), which together are
// no more than the total; what caps free and floors take is the others' in proportion. The shares add up to
// min(total, sum of caps): whole parts first, then one each by the largest fraction, the earlier where equal. Where all weights
// left are 0 they count as equal.
[[nodiscard]] std::vector<std::int32_t> share_out(std::int32_t total, std::span<const double> weights,
                                                  std::span<const std::int32_t> caps,
                                                  std::span<const std::int32_t> floors = {});

}  // namespace ebb
