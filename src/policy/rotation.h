// Rotation: keys behind evicted blocks turned back, so that cached positions are consecutive again.
//
// Says by how much, and what cosines and sines that takes; it moves no block. Successive evictions compose, since each leaves
// consecutive positions; the next token must then stand at the number of cached tokens, or queries drift away from the cache.
// For rotary embeddings of the whole head in halves, pairs (j, j + head_dim / 2), without scaling. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace ebb {

// A block that outlives an eviction and stands behind a hole.
struct BlockShift {
  std::int32_t from = 0;  // its number before
  std::int32_t to = 0;    // and after
  // Its keys are turned back by this many positions; the row of the table is (from - to).
  std::int32_t n_tokens = 0;

  friend bool operator==(const BlockShift&, const BlockShift&) = default;
};

// Of a table of n_blocks, the one being written included, without `victims` (ascending, each once); in the order of the
// table, those before the first hole left out. kInvalidArgument: a victim that is no block, or a shift that a rotation table
// of n_rows has no row for.
Result<std::vector<BlockShift>> find_shifts(std::int32_t n_blocks, std::span<const std::int32_t> victims,
                                            std::int32_t block_size, std::int32_t n_rows);

// What turns keys back by whole blocks. Row i is for i blocks, the first turns by nothing.
struct RotationTable {
  std::int32_t n_rows = 0;
  std::int32_t half_dim = 0;
  std::vector<float> cos;           // [n_rows, half_dim]
  std::vector<float> negative_sin;  // [n_rows, half_dim]

  // Angles are computed in double. kInvalidArgument: theta that is no positive number, an odd or empty head, no rows.
  static Result<RotationTable> make(std::int32_t n_rows, std::int32_t block_size, std::int32_t head_dim,
                                    double theta = 10000.0);
};

// Turns one key of 2 * half_dim in place, by the row, which must be one of the table's.
void turn_back(std::span<float> key, const RotationTable& table, std::int32_t row);

}  // namespace ebb
