// choose: how many frames leave and which, from a policy's scores, a need and how the budget is shared. Pure functions; they
// move nothing.
//
//   share    of the frames that stay, each scope (session, layer or head) has what is held there; the rest is shared out:
//            evenly, by a pyramid, or won by scores; none gets more than it has, and what is over goes to the others. A list
//            of the user's (policy/budget_list.h) counts what is held too
//   rank     the rows of a scope by score, then by position; priorities stretch ranks, so that they count for every policy
//   rescue   of those of a scope that come into question, some that stand for others go behind (KVCrush)
//   take     from each scope what is over its quota, lowest first: what nobody holds, and only as far as frames are needed
//            what is protected, then what is kept
#pragma once

#include <cstdint>
#include <vector>

#include "policy/policy.h"

namespace ebb {

// When and how far to evict, as shares of the budget. Both 1: only what is needed leaves, when it is needed (hard mode).
// Lower: room for several steps is made at once, so that evictions come rarely, at the price of having less hot.
struct Watermarks {
  double high = 1.0;
  double low = 1.0;

  // 0 < low <= high <= 1.
  [[nodiscard]] Status validate() const;
};

// Frames to evict so that n_new more fit: none while n_hot + n_new stays within the high mark, else down to the low mark,
// and always enough for the budget.
[[nodiscard]] std::int32_t count_victims(std::int32_t n_hot, std::int32_t n_new, std::int32_t budget,
                                         const Watermarks& watermarks);

// A block that is to leave the heads of a scope.
struct Victim {
  BlockIndex block;
  // ScopeEvidence::index.
  std::int32_t scope = 0;

  friend bool operator==(const Victim&, const Victim&) = default;
};

// Of each row, in the order of evidence.scopes: what the policy says, once for a choice.
using ScopeScores = std::vector<std::vector<double>>;
[[nodiscard]] ScopeScores score_scopes(const Policy& policy, const Evidence& evidence);

// In a scope's rows: 0..1, how many of them would leave before it, times its priority; kNeverLeaves as the policy says.
[[nodiscard]] std::vector<double> rank_rows(const Policy& policy, const Evidence& evidence, const ScopeEvidence& scope);

// One rank for each block: the mean over the scopes that have it, kNeverLeaves where one never lets it go. What can only be
// chosen as a whole goes by it.
[[nodiscard]] std::vector<double> rank_blocks(const Policy& policy, const Evidence& evidence);

// How many of n_frames each scope may have, in the order of evidence.scopes; none more than it has now. They add up to
// n_frames, or to all that there are.
[[nodiscard]] std::vector<std::int32_t> share_frames(const Policy& policy, const Evidence& evidence,
                                                     const ScopeScores& scores, std::int32_t n_frames);

// Those that leave, lowest first in each scope, until they give n_wanted frames, or all that may leave. Protected ones come
// after all others, in the same order, and never more of them than n_needed frames leave open; pinned ones never.
[[nodiscard]] std::vector<Victim> choose_victims(const Policy& policy, const Evidence& evidence, std::int32_t n_wanted,
                                                 std::int32_t n_needed);

// As many whole blocks, by rank_blocks(), held ones as above.
[[nodiscard]] std::vector<BlockIndex> choose_blocks(const Policy& policy, const Evidence& evidence,
                                                    std::int32_t n_blocks);

}  // namespace ebb
