// The loops of model/expected_kernels.h, for whatever instruction set the file that includes this is built for: kVectorBytes is what one
// of its registers holds.
//
// Vectors are the compiler's own, one variable each: of arrays of them, or of loops over lanes, g++ 12 makes code that is ten times
// slower. Whatever their width, an element sees the same operations in the same order.
#pragma once

#include <cstddef>

#include "model/expected_kernels.h"

namespace ebb {
namespace {

template <std::size_t kVectorBytes>
struct ExpectedLoops {
  using Floats [[gnu::vector_size(kVectorBytes)]] = float;
  using Doubles [[gnu::vector_size(kVectorBytes)]] = double;
  static constexpr std::size_t kFloats = kVectorBytes / sizeof(float);
  static constexpr std::size_t kDoubles = kVectorBytes / sizeof(double);

  static Floats load(const float* p) {
    Floats x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  static Doubles load(const double* p) {
    Doubles x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }

  // Four vectors of a triangle's row stay in registers while rows are added. x: the rows' element that the row is of.
  static void add_tile(const double* x, std::size_t n_rows, std::size_t n_dims, std::size_t offset, double* out) {
    Doubles a = load(out);
    Doubles b = load(out + kDoubles);
    Doubles c = load(out + 2 * kDoubles);
    Doubles d = load(out + 3 * kDoubles);
    for (std::size_t r = 0; r < n_rows; ++r, x += n_dims) {
      const double* const y = x + offset;
      a += *x * load(y);
      b += *x * load(y + kDoubles);
      c += *x * load(y + 2 * kDoubles);
      d += *x * load(y + 3 * kDoubles);
    }
    __builtin_memcpy(out, &a, sizeof a);
    __builtin_memcpy(out + kDoubles, &b, sizeof b);
    __builtin_memcpy(out + 2 * kDoubles, &c, sizeof c);
    __builtin_memcpy(out + 3 * kDoubles, &d, sizeof d);
  }

  static void add_products(const double* rows, std::size_t n_rows, std::size_t n_dims, double* triangle) {
    for (std::size_t i = 0; i < n_dims; ++i) {
      const std::size_t n = n_dims - i;
      std::size_t at = 0;
      for (; at + 4 * kDoubles <= n; at += 4 * kDoubles) add_tile(rows + i, n_rows, n_dims, at, triangle + at);
      for (; at < n; ++at) {
        double sum = triangle[at];
        for (std::size_t r = 0; r < n_rows; ++r) sum += rows[r * n_dims + i] * rows[r * n_dims + i + at];
        triangle[at] = sum;
      }
      triangle += n;
    }
  }

  // Two vectors of lanes.
  static void find_some(const float* mean, const float* spread, const float* keys, std::size_t n_dims, float* out) {
    Floats logits = {};
    Floats other_logits = {};
    for (std::size_t i = 0; i < n_dims; ++i, keys += kExpectedLanes) {
      Floats sums = Floats{} + mean[i];
      Floats other_sums = sums;
      for (std::size_t d = 0; spread != nullptr && d < n_dims - i; ++d) {
        const float* const plane = keys + d * kExpectedLanes;
        sums += spread[d] * load(plane);
        other_sums += spread[d] * load(plane + kFloats);
      }
      if (spread != nullptr) spread += n_dims - i;
      logits += load(keys) * sums;
      other_logits += load(keys + kFloats) * other_sums;
    }
    __builtin_memcpy(out, &logits, sizeof logits);
    __builtin_memcpy(out + kFloats, &other_logits, sizeof other_logits);
  }

  static void find_logits(const float* mean, const float* spread, const float* keys, std::size_t n_dims, float* out) {
    static_assert(kExpectedLanes % (2 * kFloats) == 0);
    for (std::size_t lane = 0; lane < kExpectedLanes; lane += 2 * kFloats) {
      find_some(mean, spread, keys + lane, n_dims, out + lane);
    }
  }
};

}  // namespace
}  // namespace ebb
