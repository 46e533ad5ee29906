// For tests of benches: probes that take a millisecond. What they find is the caches' speed.
#pragma once

#include "bench/peak.h"

namespace ebb {

inline constexpr PeakSizes kToyPeak{.least = std::size_t{2} << 20, .most = std::size_t{4} << 20};

}  // namespace ebb
