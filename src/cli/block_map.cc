#include "cli/block_map.h"

#include <algorithm>

namespace ebb {

std::string block_map(const Session& session, std::span<const BlockIndex> recalled, const BlockSigns& signs) {
  std::string map;
  for (std::int32_t b = 0; b < session.n_blocks(); ++b) {
    const BlockIndex block(b);
    switch (session.state(block)) {
      case BlockState::kHot:
      case BlockState::kClean:
        map += std::ranges::find(recalled, block) != recalled.end() ? signs.recalled : signs.hot;
        break;
      case BlockState::kPartly: map += signs.partly; break;
      case BlockState::kSaved: map += signs.saved; break;
      case BlockState::kMissing: map += signs.missing; break;
    }
  }
  return map;
}

std::string block_map_legend(const BlockSigns& signs) {
  return fmt::format(
      "{} hot   {} hot in some heads   {} recalled in this turn   {} saved: evicted, and kept in the cold store   "
      "{} missing",
      signs.hot, signs.partly, signs.recalled, signs.saved, signs.missing);
}

}  // namespace ebb
