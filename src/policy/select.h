// select: which cold blocks are worth recalling, from a ranking by words. A pure function; it moves nothing.
//
// Blocks are chosen one by one, and what a chosen block says already counts for less in the next: a question of a form that
// was asked before shares most words with the blocks of those questions, and few, but the ones that matter, with the block
// that answers it (maximal marginal relevance, Carbonell and Goldstein 1998, over words). A block is worth it if it
// still scores at least half of the best cold one. A block beside one that scores is worth half of that, or 0.9 of what the
// words near their border gave if that is more, since what is said there begins or ends across it. Hot blocks are no
// candidates and lower nothing: what was asked before and lies there would otherwise keep what is asked now from coming back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/rare_words.h"

namespace ebb {

struct Selection {
  // Cold, best first.
  std::vector<BlockIndex> recall;
  // Hot, and as much worth as those: not to be evicted for them.
  std::vector<BlockIndex> keep;
};

// `is_hot` has an entry for each block of the session; at most max_blocks of each kind are chosen.
[[nodiscard]] Selection select_blocks(std::span<const Scored> ranked, const std::vector<bool>& is_hot,
                                      std::int32_t max_blocks);

}  // namespace ebb
