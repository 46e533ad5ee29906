// Pooling: a token's number, and those of its neighbours. Pure; only policies include it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/evidence.h"

namespace ebb {

struct Pooling {
  // The last tokens are not pooled, nor with those before them.
  std::int32_t window = 0;
  // Tokens, an odd number; a grain that it does not span is not pooled.
  std::int32_t kernel = 1;
  // Their largest; else their mean, which counts what lies past the ends as zeros, as PyTorch does by default.
  bool takes_max = false;
};

// Of how many rows, the first ones, everything lies before the last `window` tokens.
[[nodiscard]] std::size_t count_before_window(const Evidence& evidence, const ScopeEvidence& scope,
                                              std::int32_t window);

// `values` are numbers of the scope's rows, none negative.
[[nodiscard]] std::vector<double> pool_before_window(const Evidence& evidence, const ScopeEvidence& scope,
                                                     const std::vector<double>& values, const Pooling& pooling);

}  // namespace ebb
