// Product: a weight matrix times rows, in the layout that is faster for that many rows.
//
// ggml's repacked Q4_K wins for few rows (decode) and loses by almost half for many (prefill), where the layout of the
// file goes through ggml's tiles. So Q4_K weights lie repacked, and a product of many rows first puts its matrix back
// into the file's layout, in memory of the graph: the same bytes, once per matrix and chunk. It does not know models.
// Thread rule: functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ggml-backend.h"

struct ggml_context;
struct ggml_tensor;

namespace ebb {

// weight [n_in, n_out] in any memory of its device, rows [n_in, n_rows] f32 -> [n_out, n_rows] f32.
[[nodiscard]] ggml_tensor* multiply(ggml_context* context, ggml_tensor* weight, ggml_tensor* rows);

// Whether products of many rows are faster from the file's layout than from `memory`, and `multiply` can go back to it:
// asks ggml to repack a few rows and compares what comes back, since that layout is ggml's own affair.
[[nodiscard]] bool can_unpack_q4_k(ggml_backend_buffer_type_t memory);

// Rows of Q4_K as ggml interleaves them by eight (in chunks of 8 bytes) -> as they lie in files.
//
//   packed:  [n_rows / 8][n_in / 256] of { d x 8, dmin x 8, (8 scales and mins of 8 rows) x 8, 8-byte chunks by turns }
//   plain:   [n_rows][n_in / 256] of { d, dmin, 8 scales and mins, 128 bytes of 4-bit values }
//
// Spans hold all n_rows; part `part` of `n_parts` is done. n_rows: a multiple of 8.
struct PackedRows {
  std::size_t n_in = 0;
  std::size_t n_rows = 0;
};
void unpack_q4_k(std::span<const std::byte> packed, std::span<std::byte> plain, const PackedRows& rows, int part,
                 int n_parts);

}  // namespace ebb
