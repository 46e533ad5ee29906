// Rows by tiles, and where their sums go, for the files that are built for an instruction set. Thread rule: pure functions of their arguments.
#pragma once

#include <cstddef>

#include "matrix/weight_kind.h"

namespace ebb {
namespace {

// As many rows together as registers allow, and of those that are left half as many, and so on: tile.operator()<kRows>(first row).
template <std::size_t kRows>
void for_row_tiles(std::size_t n_rows, const auto& tile, std::size_t first = 0) {
  for (; first + kRows <= n_rows; first += kRows) tile.template operator()<kRows>(first);
  if constexpr (kRows > 1) for_row_tiles<kRows / 2>(n_rows, tile, first);
}

// Sums of the part of a panel's rows that fills a register, of which n of the whole panel are there.
template <class Lanes>
[[gnu::always_inline]] inline void store_part(const typename Lanes::Floats& sums, std::size_t part, float* row,
                                              std::size_t n) {
  const std::size_t first = part * Lanes::kLanes;
  if (n >= first + Lanes::kLanes) {
    __builtin_memcpy(row + first, &sums, sizeof sums);
  } else if (n > first) {
    __builtin_memcpy(row + first, &sums, (n - first) * sizeof(float));
  }
}

}  // namespace
}  // namespace ebb
