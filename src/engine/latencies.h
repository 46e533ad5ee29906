// Latencies: how long clients wait, as histograms in seconds. Of all owners together: a key's own would tell others of it.
#pragma once

#include <array>

#include "base/histogram.h"

namespace ebb {

// Of waits, from what nobody notices to what clients give up at.
inline constexpr std::array kWaitBounds = {0.001, 0.005, 0.01, 0.025, 0.05, 0.1,  0.25,
                                           0.5,   1.0,   2.5,  5.0,   10.0, 30.0, 120.0};
// Of single tokens: from a small model's on a GPU to one that waits for a long prompt of another.
inline constexpr std::array kTokenBounds = {0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075,
                                            0.1,   0.15,   0.25,  0.5,  1.0,  2.5,  10.0};

struct Latencies {
  // In the queue, of requests that began.
  Histogram queue{kWaitBounds};
  // From being put into the queue to the first token.
  Histogram first_token{kWaitBounds};
  // Between two tokens of one reply.
  Histogram next_token{kTokenBounds};
  // Bringing blocks back, of each turn that ended and brought back some.
  Histogram recall{kWaitBounds};
};

}  // namespace ebb
