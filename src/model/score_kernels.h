// The loops in which scoring keys that left spends its time, for each instruction set.
//
// They see rows of numbers: no heads, digests or threads. Every set does the same additions and products in the same order, element
// by element and never fused, so that all give the same bits. The files that implement them are built for their instruction set,
// so nothing here is a function with a body. Thread rule: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ebb {

// What channels lie between, [dim] each.
template <class T>
struct Box {
  T* least = nullptr;
  T* greatest = nullptr;
};
struct BoxWidths {
  float own = 0.0F;
  float around = 0.0F;
};

// Rows of queries as signed bytes, beside keys whose channels are whole numbers from 0 to kMostLevel.
struct ByteRows {
  std::int32_t* quads = nullptr;  // [dim / 4][row], four channels in one number
  float* base = nullptr;          // [row]
  float* unit = nullptr;          // [row]
};

// Such keys, four channels in one number: that of key k and channels 4 j to 4 j + 3 is quads[k * key_stride + j * quad_stride].
struct ByteKeys {
  const std::int32_t* quads = nullptr;
  std::size_t key_stride = 0;
  std::size_t quad_stride = 0;
  std::size_t n_keys = 0;  // a multiple of kKeysTogether
};

// Rows and keys that are computed side by side; what is padded is padded to a multiple of it.
inline constexpr std::size_t kScoreLanes = 16;
inline constexpr std::size_t kRowLanes = 8;
inline constexpr std::size_t kKeysTogether = 4;
// Seven bits: two products of such a number with a signed byte are a number of sixteen.
inline constexpr std::int32_t kMostLevel = 127;

struct ScoreKernels {
  // logits[row * stride + key] = sum over dims of queries[row][dim] * planes[dim][key], of n_keys, a multiple of kScoreLanes.
  void (*find_logits)(const float* queries, std::size_t n_rows, std::size_t n_dims, const float* planes,
                      std::size_t n_keys, float* logits, std::size_t stride);

  // n numbers of two bytes, IEEE's binary16.
  void (*widen_halves)(const std::uint16_t* halves, std::size_t n, float* out);

  // --- products of bytes; n_rows is a multiple of kRowLanes and n_dims of kScoreLanes ---
  // The box around two, and how wide the first of them and it are: the sums over dims of weights[dim] * width.
  BoxWidths (*join_boxes)(const float* weights, const Box<const float>& own, const Box<const float>& other,
                          std::size_t n_dims, const Box<float>& around);
  // Of queries [dim][n_rows], for keys least + step * level: base[row] = sum of query * least, and the products query * step in units of
  // unit[row]: the largest of a row is 127 of them.
  void (*weigh_steps)(const float* queries, std::size_t n_rows, std::size_t n_dims, const float* least,
                      const float* step, const ByteRows& out);
  // out[dim] = (x[dim] - least[dim]) * per_step[dim] as the nearest whole number from 0 to kMostLevel.
  void (*find_levels)(const float* x, const float* least, const float* per_step, std::size_t n_dims,
                      unsigned char* out);
  // The keys of a sketch of 2 bits (model/key_digest.h), whose codes stand for own + code * own_step: levels[dim][code], as above.
  void (*find_code_levels)(const float* own, const float* own_step, const float* least, const float* per_step,
                           std::size_t n_dims, unsigned char* levels);
  // The levels of its keys: quads[dim / 4][key].
  void (*spread_codes)(const unsigned char* sketch, const unsigned char* levels, std::size_t n_dims, std::size_t n_keys,
                       std::int32_t* quads);
  // logits[key][row] = base[row] + unit[row] * sum of both's products.
  void (*multiply_bytes)(const ByteRows& rows, std::size_t n_rows, std::size_t n_dims, const ByteKeys& keys,
                         float* logits);
  // Of those logits the largest of each row, and the sum of exp(logit - that) over the first n_summed keys, within 2e-4 of it.
  // `scratch`: [n_keys][2 kScoreLanes].
  void (*weigh_keys)(const ByteRows& rows, std::size_t n_rows, std::size_t n_dims, const ByteKeys& keys,
                     std::size_t n_summed, float* scratch, float* most, float* sums);

  // --- softmax, of x[i][row] ---
  // Each row's `most` becomes the largest of it and of n.
  void (*find_most)(const float* x, std::size_t n, std::size_t n_rows, float* most);
  // behind[i] = the least that any row's x is below its `most`.
  void (*find_behind)(const float* x, const float* most, std::size_t n, std::size_t n_rows, float* behind);
  // weights[i][row] = sums[i][row] * exp(most[i][row] - the largest of the row), of n, and each row's sum of them. In place of `most` if
  // that is the same.
  void (*weigh)(const float* most, const float* sums, std::size_t n, std::size_t n_rows, float* weights, float* totals);
};

extern const ScoreKernels kPortableScoreKernels;
#if defined(__x86_64__)
extern const ScoreKernels kAvx2ScoreKernels;
extern const ScoreKernels kAvx512ScoreKernels;
// Of processors that multiply bytes and add four products at once; the bits are the same.
extern const ScoreKernels kAvx512VnniScoreKernels;
#endif

// Those of current_kernel_set().
[[nodiscard]] const ScoreKernels& score_kernels();

}  // namespace ebb
