// What one key may have of what all keys share, where the flags do not say: half of it where there are several, so that no
// key alone can take everything from the others. More: less is left for them. Less: a key that is alone at work has less.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

namespace ebb {

[[nodiscard]] inline std::size_t key_bound(std::optional<std::size_t> given, std::size_t all, std::size_t n_keys) {
  if (given) return std::min(*given, all);
  return n_keys > 1 ? std::max<std::size_t>(1, all / 2) : all;
}

}  // namespace ebb
