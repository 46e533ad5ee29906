// The loops in which scoring keys that left spends its time, for each instruction set.
//
// They see rows of numbers: no heads, digests or threads. Every set does the same additions and products in the same order, element
// by element and never fused, so that all give the same bits. The files that implement them are built for their instruction set,
// so nothing here is a function with a body. Thread rule: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ebb {

// What queries are beside one block's steps.
struct SketchRows {
  std::int32_t* steps = nullptr;  // [dim / 2][row]
  float* base = nullptr;          // [row]
  float* unit = nullptr;          // [row]
};

// A block's codes.
struct SketchCodes {
  const std::int32_t* pairs = nullptr;  // [dim / 2][n_slots]
  std::size_t n_keys = 0;
  std::size_t n_slots = 0;   // a multiple of kScoreLanes
  float* scratch = nullptr;  // [n_slots][2 kScoreLanes]
};

// Keys or blocks that are computed side by side, and rows; what is padded is padded to a multiple of it.
inline constexpr std::size_t kScoreLanes = 16;
inline constexpr std::size_t kRowLanes = 8;

struct ScoreKernels {
  // logits[row * stride + key] = sum over dims of queries[row][dim] * planes[dim][key], of n_keys, a multiple of kScoreLanes.
  void (*find_logits)(const float* queries, std::size_t n_rows, std::size_t n_dims, const float* planes,
                      std::size_t n_keys, float* logits, std::size_t stride);

  // Of n, a multiple of kScoreLanes.
  float (*find_most)(const float* x, std::size_t n);

  // --- keys of 2 bits (model/key_digest.h), whose products are of whole numbers ---
  // n numbers of two bytes, IEEE's binary16.
  void (*widen_halves)(const std::uint16_t* halves, std::size_t n, float* out);
  // The codes of a sketch, two channels in one number: pairs[dim / 2][key] is the even one's and 2^16 times the odd one's.
  void (*spread_codes)(const unsigned char* sketch, std::size_t n_dims, std::size_t n_keys, std::int32_t* pairs);
  // Of queries [dim][n_rows], n_rows a multiple of kRowLanes: base[row] = sum of query * least, and the products query * step of
  // two channels in one number as 16 bits each, in units of unit[row]: the largest of a row is 32767 of them.
  void (*weigh_steps)(const float* queries, std::size_t n_rows, std::size_t n_dims, const float* least,
                      const float* step, const SketchRows& out);
  // Of the logits base[row] + unit[row] * sum over pairs of both products, for the first n_keys keys of the sketch: the largest of
  // each row, and the sum of exp(logit - that), within 1e-5 of it.
  void (*weigh_codes)(const SketchRows& rows, std::size_t n_rows, std::size_t n_dims, const SketchCodes& codes,
                      float* most, float* sums);

  // weights[i][row] = sums[i][row] * exp(most[i][row] - the largest of the row), of n, and each row's sum of them. In place of `most` if
  // that is the same.
  void (*weigh)(const float* most, const float* sums, std::size_t n, std::size_t n_rows, float* weights, float* totals);
};

extern const ScoreKernels kPortableScoreKernels;
#if defined(__x86_64__)
extern const ScoreKernels kAvx2ScoreKernels;
extern const ScoreKernels kAvx512ScoreKernels;
#endif

// Those of current_kernel_set().
[[nodiscard]] const ScoreKernels& score_kernels();

}  // namespace ebb
