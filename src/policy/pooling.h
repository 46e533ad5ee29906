// Pooling: a token's number, and those of its neighbours; and what a block is worth by its slices. Pure; only policies
// include it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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

// Numbers of slices, one behind the other over the rows of a scope; slices without tokens are none of them.
struct SliceValues {
  std::vector<double> values;
  std::vector<Position> ends;
  std::vector<std::size_t> begins;  // of each row, and the end

  [[nodiscard]] std::span<const double> of(std::size_t row) const {
    return std::span(values).subspan(begins[row], begins[row + 1] - begins[row]);
  }
};
// `column`: one of scope.slices.
[[nodiscard]] SliceValues list_slices(const Evidence& evidence, const ScopeEvidence& scope,
                                      const std::vector<double>& column);
// As above, over slices: those that end before the last `window` tokens, across the borders of blocks.
[[nodiscard]] SliceValues pool_before_window(const Evidence& evidence, const ScopeEvidence& scope, SliceValues list,
                                             const Pooling& pooling);

// What a row is worth by its slices.
enum class Lift : std::uint8_t { kMean, kMost };
[[nodiscard]] std::vector<double> lift_slices(const SliceValues& list, Lift lift);

}  // namespace ebb
