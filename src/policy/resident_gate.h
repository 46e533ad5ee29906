// EVOKE's resident gate: a block comes back only if it scores more than every block that is hot.
//
// It is there to be measured: where what was asked before stays hot, and is of the same form as what is asked now, ever fewer blocks
// pass (reference: EVOKE, smart recover). The session's first block and its last full one, which holds what is being asked, shut out
// nobody. Scores are the selector's own: of words BM25's, of queries shares of attention.
//
// Thread rule: pure functions.
#pragma once

#include <memory>
#include <span>

#include "policy/selector.h"

namespace ebb {

inline constexpr Parameter kGate = {
    .name = "gate",
    .value = 0,
    .least = 0,
    .most = 1,
    .is_whole = true,
    .summary = "1: only blocks that score more than every hot block but the first and the last (EVOKE's gate)"};

// The most that a hot block scores, of those that count; 0 where none does.
[[nodiscard]] double best_hot_score(std::span<const Scored> scored, std::span<const double> missing);

// `selector` itself, or behind the gate where the values say so.
[[nodiscard]] std::unique_ptr<const Selector> behind_gate(const ParameterValues& values,
                                                          std::unique_ptr<const Selector> selector);

}  // namespace ebb
