// The kernels of attention: one tile of query rows against one block, for each instruction set.
//
// A tile's rows are query heads of one KV head, for one or several query tokens. They are computed in steps of
// `step_rows` rows that share every load of K and V; the arithmetic of a row does not depend on its company. Kernels
// see rows and bytes: no sequences, tables or threads. The files that implement them are built for their instruction
// set, so nothing here is a function with a body: the linker could keep the copy that an older processor cannot run.
//
//   q        [n_rows / step_rows][head_dim_k][step_rows]     one broadcast after the other in memory
//   o        [n_rows][value_stride]                          value_stride: head_dim_v rounded up to 16
//   m, l     [n_rows]                                        m = -inf: nothing seen yet
//
// Thread rule: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ebb {

struct TileRows {
  std::int32_t n_rows = 0;  // a multiple of step_rows; the rows that pad the last step repeat the last real one
  std::int32_t step_rows = 0;
  std::int32_t head_dim_k = 0, head_dim_v = 0;
  std::int32_t key_stride = 0, value_stride = 0;
  std::int32_t window = 0;
  float scale = 0.0F;  // AttentionShape::scale times log2(e): exponents here are of base 2
  const float* q = nullptr;
  const std::int32_t* positions = nullptr;  // [n_rows]
  float* m = nullptr;
  float* l = nullptr;
  float* o = nullptr;
  float* unpacked_k = nullptr;  // room for [head_dim_k][key_stride]
  float* unpacked_v = nullptr;  // room for [block_size][value_stride]
};

struct BlockView {
  const std::byte* k = nullptr;
  const std::byte* k_scales = nullptr;
  const std::byte* v = nullptr;
  const std::byte* v_scales = nullptr;
  // From this frame to the next one that the tile will read, which is fetched while this one is computed; 0: none.
  std::ptrdiff_t next_frame = 0;
  std::int32_t frame_bytes = 0;
  std::int32_t begin = 0;
  std::int32_t n_tokens = 0;
  // Only rows at positions [query_begin, query_end) are computed: of a block in two forms, those that see this one. The
  // others are left as they are, block_l and block_m too.
  std::int32_t query_begin = INT32_MIN;
  std::int32_t query_end = INT32_MAX;
  // For attention mass, [n_rows], or null: sum p of the block, and the m that p refers to (-inf: block unseen).
  float* block_l = nullptr;
  float* block_m = nullptr;
  // For the mass of slices, [n_rows][key_stride], or null: p of each slot, 0 where the row does not see it. With block_l.
  float* block_p = nullptr;
};

// [n_rows][n_columns], rows `stride` floats apart; n_columns is a multiple of 16.
struct MatrixView {
  const float* data = nullptr;
  std::int32_t n_rows = 0;
  std::int32_t n_columns = 0;
  std::int32_t stride = 0;
};

// `n` vectors of as many numbers as a matrix has rows, `stride` floats apart.
struct VectorsView {
  const float* data = nullptr;
  std::int32_t n = 0;
  std::int32_t stride = 0;
};

using AttendBlock = void (*)(const TileRows& tile, const BlockView& block);

// scores[r][s] = scale * the sum over dimensions d, by fma in order, of q[r][d][s mod 16] * k[d][s], of the block's slots s; a row has
// kScoreStride. q lies [n_rows / kDiagonalRows][head_dim_k][kDiagonalRows][16]; n_rows is a multiple of kDiagonalRows.
using ScoreDiagonals = void (*)(const TileRows& tile, const BlockView& block, float* scores);

struct AttentionKernels {
  // Steps have one of these sizes; 0 ends the list, which ascends.
  std::int32_t step_sizes[8];
  AttendBlock attend_block[5];        // by RowType; of kKivi4, a sealed block
  ScoreDiagonals score_diagonals[5];  // likewise
  // n is a multiple of 16. Exactly 1 at 0; 0 below -126.
  void (*exp2_in_place)(float* x, std::int32_t n);
  // mass[i] + p[i] * factor * share, rounded after each; n is a multiple of 16.
  void (*add_slots)(const float* p, float factor, float share, float* mass, std::int32_t n);
  void (*to_f16)(const float* x, std::uint16_t* out, std::int32_t n);
  void (*from_f16)(const std::uint16_t* x, float* out, std::int32_t n);
  // fma(code, scale, least) of a run of sealed codes; n is a multiple of 16.
  void (*from_codes)(const std::uint8_t* codes, float scale, float least, float* out, std::int32_t n);
  // products[v][j] = the sum over i, by fma in order, of vectors[v][i] * matrix[i][j]; [n][n_columns].
  void (*multiply)(const MatrixView& matrix, const VectorsView& vectors, float* products);
};

// The most rows in a step and keys in a block of any kernel set.
inline constexpr std::int32_t kMaxStepRows = 8;
inline constexpr std::int32_t kMaxBlockKeys = 128;
// Rows of scores. The odd line between them keeps them out of each other's cache sets.
inline constexpr std::int32_t kScoreStride = kMaxBlockKeys + 16;
// Rows that a pass of score_diagonals takes together.
inline constexpr std::int32_t kDiagonalRows = 4;

extern const AttentionKernels kPortableKernels;
#if defined(__x86_64__)
extern const AttentionKernels kAvx2Kernels;
extern const AttentionKernels kAvx512Kernels;
#endif

}  // namespace ebb
