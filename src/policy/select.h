// select: which cold blocks are worth recalling, from rankings by words. Pure functions; they move nothing.
//
// Each cue (policy/cues.h) chooses for itself, and then those of one weight take turns: so what asks for ten things finds
// ten, and a cue that finds much takes no other's place; the lighter ones come behind some choices of the heavier. What is
// little beside the best that any of them found, hot or not, is not chosen.
//
// Blocks are chosen one by one, and what a chosen block says already counts for less in the next: a question of a form that
// was asked before shares most words with the blocks of those questions, and few, but the ones that matter, with the block
// that answers it (maximal marginal relevance, Carbonell and Goldstein 1998, over words). A block is worth it if it
// still scores at least half of the best one that is not hot in every head; what is told in many places comes from all of them that score nearly as
// well, before what stands beside them. A block beside one that scores is worth half of that, or 0.9 of what the
// words near their border gave if that is more, since what is said there begins or ends across it (and comes then, whatever else is worth more); of small blocks `reach` of those behind it
// are beside it, the nearer first; and where a neighbour has words itself, the next one too. Where no sentence goes on across the
// border, the neighbour comes behind all that has words of its own, whichever cue found it. Hot blocks are no candidates and lower nothing: what was asked
// before and lies there would otherwise keep what is asked now from coming back. But those that are worth as much as what comes have
// room with it, one for one: else the answer may leave for what is only like it.
// One that is hot in some heads takes as much of a block's room as is missing of it, and is worth no less: which heads it is missing
// from may be those that look for it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/rare_words.h"

namespace ebb {

// A block, and what it is worth beside those that were chosen before it.
struct BlockWorth {
  BlockIndex block;
  double worth = 0.0;
  // It stands beside one of those, and no sentence goes on there.
  bool is_aside = false;
};

// Each in the order of choosing.
struct Selection {
  // Not hot in every head.
  std::vector<BlockWorth> recall;
  // Hot, and as much worth as those: not to be evicted for them.
  std::vector<BlockWorth> keep;
};

// What is to come or to stay.
struct Chosen {
  BlockIndex block;
  bool is_hot = false;
};

// What one cue found, best first.
struct CueRanking {
  double weight = 1.0;
  // Found by what another's answer names: it is not measured by what that found.
  bool is_linked = false;
  std::vector<Scored> ranked;
};

// `missing` says of each block of the session which share of its heads it is not hot in; of each kind as many are
// chosen as take the room of max_blocks, and at most four times as many. What is worth less than `least` is not chosen, however little the
// others are worth.
[[nodiscard]] Selection select_blocks(std::span<const Scored> ranked, std::span<const double> missing,
                                      std::int32_t max_blocks, std::int32_t reach = 1, double least = 0.0);
// The same of several cues, heaviest first, each block once, in the order in which they are to have room.
[[nodiscard]] std::vector<Chosen> select_for_cues(std::span<const CueRanking> rankings, std::span<const double> missing,
                                                  std::int32_t max_blocks, std::int32_t reach = 1);

// What several cues found as one list, each block once: cues of one weight take turns, and a light one's first choice comes behind
// some of a heavy one's. Behind each cold one stands the hot one of its turn, if it is worth as much; other hot ones behind all of
// these. Of cold and of hot ones as many as select_blocks chooses of each. [cue] weights and found.
[[nodiscard]] std::vector<Chosen> take_turns(std::span<const double> weights, std::span<const Selection> found,
                                             std::span<const double> missing, std::int32_t max_blocks);

}  // namespace ebb
