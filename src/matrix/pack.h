// Packing: rows of weights as they lie in files -> panels, in which sixteen rows lie interleaved (matrix/weight_kind.h).
//
//   codes of a block:  8 bits   [8 quads][16 rows][4]
//                      4 bits   [4][16 rows][4], of the byte at [j] the low half is quad j's and the high half quad 4 + j's
//                      5 bits   as 4, then [16 rows][4] whose bit q is the fifth bit of quad q's
//                      6 bits   as 4, then [2][16 rows][4] whose bits 2q and 2q + 1 at [h] are the upper bits of quad 4h + q's
//   floats             [32 values][16 rows]
//   scales of a unit:  Q8_0, Q4_0, IQ4_NL   d [16] f16
//                      Q4_K, Q5_K           d [16], dmin [16] f16; low halves [8][16], upper bits [4][16] of scales and leasts
//                      Q6_K                 d [16] f16; scales [16][16] signed bytes
//                      IQ4_XS               d [16] f16; scales [8][16] signed bytes
//
// No weight changes: each code and scale is the file's. Thread rule: functions of their arguments.
#pragma once

#include <cstddef>
#include <span>

#include "matrix/weight_kind.h"

namespace ebb {

// `file`: [n_rows][n_in], n_rows of 1 to kPanelRows; rows that are missing are 0. `panel`: panel_bytes, aligned to 64.
void pack_panel(WeightKind kind, std::span<const std::byte> file, std::size_t n_rows, std::size_t n_in,
                std::byte* panel);

}  // namespace ebb
