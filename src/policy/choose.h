// choose: how many frames leave and which, from a policy's scores and a need. Pure functions; they move nothing.
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

// A block that is to leave, or one head of it.
struct Victim {
  BlockIndex block;
  std::int32_t head = kAllHeads;

  friend bool operator==(const Victim&, const Victim&) = default;
};

// Those of the lowest scores, lowest first, until they give n_wanted frames, or all that may leave. Protected ones come after
// all others, in the same order, and never more of them than n_needed frames leave open; pinned ones never.
[[nodiscard]] std::vector<Victim> choose_victims(const Policy& policy, const Evidence& evidence, std::int32_t n_wanted,
                                                 std::int32_t n_needed);

}  // namespace ebb
