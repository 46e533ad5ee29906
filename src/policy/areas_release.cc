#include "policy/areas_release.h"

#include <algorithm>

#include "base/to_size.h"

namespace ebb {
namespace {

Status check_layer(std::span<const std::int32_t> victims, std::size_t layer, std::int32_t n_blocks) {
  for (std::size_t k = 0; k < victims.size(); ++k) {
    if (victims[k] < 0 || victims[k] >= n_blocks) {
      return error(Code::kInvalidArgument, "layer {} gives back block {} of a table of {}", layer, victims[k],
                   n_blocks);
    }
    if (k > 0 && victims[k] <= victims[k - 1]) {
      return error(Code::kInvalidArgument, "layer {} gives back block {} behind block {}: name each once, ascending",
                   layer, victims[k], victims[k - 1]);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::vector<std::int32_t>>> group_victims(std::span<const std::vector<std::int32_t>> victims,
                                                             std::int32_t n_layers, std::int32_t n_blocks) {
  if (n_layers < 1 || victims.size() != to_size(n_layers)) {
    return error(Code::kInvalidArgument, "victims of {} layers, and the model has {}", victims.size(), n_layers);
  }
  for (std::size_t layer = 0; layer < victims.size(); ++layer) {
    EBB_RETURN_IF_ERROR(check_layer(victims[layer], layer, n_blocks));
    if (victims[layer].size() == victims.front().size()) continue;
    return error(
        Code::kInvalidArgument,
        "layer {} gives back {} blocks and layer 0 {}: blocks of all layers are reserved together, so they leave in "
        "equal numbers",
        layer, victims[layer].size(), victims.front().size());
  }
  std::vector<std::vector<std::int32_t>> groups(victims.front().size());
  for (std::size_t k = 0; k < groups.size(); ++k) {
    for (const std::vector<std::int32_t>& of_layer : victims) groups[k].push_back(of_layer[k]);
  }
  return groups;
}

Status check_group_released(std::span<const std::int32_t> n_holders) {
  const auto n_free = std::ranges::count(n_holders, 0);
  if (n_free == 0 || n_free == static_cast<std::ptrdiff_t>(n_holders.size())) return {};
  return error(
      Code::kInvalidArgument,
      "{} of the {} blocks of a group are free and the others still held: they were reserved together and must come "
      "free together",
      n_free, n_holders.size());
}

Status check_equal_victims(std::span<const std::int32_t> n_victims) {
  for (std::size_t i = 1; i < n_victims.size(); ++i) {
    if (n_victims[i] == n_victims[0]) continue;
    return error(
        Code::kInvalidArgument,
        "sequence {} of the group evicted {} blocks and sequence 0 {}: one counter of evicted tokens serves the group",
        i, n_victims[i], n_victims[0]);
  }
  return {};
}

}  // namespace ebb
