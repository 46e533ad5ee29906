// The loops of model/score_kernels.h, for whatever instruction set the file that includes this is built for: kVectorBytes is what one of
// its registers holds.
//
// Vectors are the compiler's own, one variable each (model/expected_kernels_body.h says why). Whatever their width, an element sees
// the same operations in the same order; the lanes of a sum are kScoreLanes everywhere.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "model/score_kernels.h"

namespace ebb {
namespace {

template <std::size_t kVectorBytes>
struct ScoreLoops {
  using Floats [[gnu::vector_size(kVectorBytes)]] = float;
  using Ints [[gnu::vector_size(kVectorBytes)]] = std::int32_t;
  static constexpr std::size_t kFloats = kVectorBytes / sizeof(float);

  static Floats load(const float* p) {
    Floats x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  static void store(const Floats& x, float* p) { __builtin_memcpy(p, &x, sizeof x); }

  // Two rows by two vectors of keys: each key is read once for both rows.
  static void find_tile(const float* a, const float* b, std::size_t n_dims, const float* plane, std::size_t n_keys,
                        float* out_a, float* out_b) {
    Floats a0 = {};
    Floats a1 = {};
    Floats b0 = {};
    Floats b1 = {};
    for (std::size_t d = 0; d < n_dims; ++d, plane += n_keys) {
      const Floats k0 = load(plane);
      const Floats k1 = load(plane + kFloats);
      a0 += a[d] * k0;
      a1 += a[d] * k1;
      b0 += b[d] * k0;
      b1 += b[d] * k1;
    }
    store(a0, out_a);
    store(a1, out_a + kFloats);
    store(b0, out_b);
    store(b1, out_b + kFloats);
  }

  static void find_vector(const float* a, std::size_t n_dims, const float* plane, std::size_t n_keys, float* out) {
    Floats sum = {};
    for (std::size_t d = 0; d < n_dims; ++d, plane += n_keys) sum += a[d] * load(plane);
    store(sum, out);
  }

  static void find_logits(const float* queries, std::size_t n_rows, std::size_t n_dims, const float* planes,
                          std::size_t n_keys, float* logits) {
    for (std::size_t row = 0; row < n_rows; ++row) {
      const float* const a = queries + row * n_dims;
      float* const out = logits + row * n_keys;
      std::size_t key = 0;
      if (row + 1 < n_rows) {
        for (; key + 2 * kFloats <= n_keys; key += 2 * kFloats) {
          find_tile(a, a + n_dims, n_dims, planes + key, n_keys, out + key, out + n_keys + key);
        }
        for (; key < n_keys; key += kFloats) {
          find_vector(a, n_dims, planes + key, n_keys, out + key);
          find_vector(a + n_dims, n_dims, planes + key, n_keys, out + n_keys + key);
        }
        ++row;
        continue;
      }
      for (; key < n_keys; key += kFloats) find_vector(a, n_dims, planes + key, n_keys, out + key);
    }
  }

  // exp of what is not above 0: 2^n times a polynomial in what is left, Taylor's of degree 6. Adding 1.5 2^23 rounds to a whole n,
  // which then stands in the low bits.
  static Floats exp_of(Floats x) {
    constexpr float kRound = 12582912.0F;
    constexpr std::int32_t kRoundBits = 0x4B400000;
    const Floats least = Floats{} - 80.0F;
    x = x < least ? least : x;
    const Floats t = x * 1.44269504F;
    const Floats rounded = t + kRound;
    const Floats f = (t - (rounded - kRound)) * 0.693147181F;
    const Floats p =
        1.0F +
        f * (1.0F + f * (0.5F + f * (0.166666667F + f * (0.0416666667F + f * (0.00833333333F + f * 0.00138888889F)))));
    Ints n;
    __builtin_memcpy(&n, &rounded, sizeof n);
    const Ints power = (n - kRoundBits + 127) << 23;
    Floats two_n;
    __builtin_memcpy(&two_n, &power, sizeof two_n);
    return p * two_n;
  }

  static float sum_weights(const float* logits, std::size_t n_keys, float least, float* sum) {
    std::array<float, kScoreLanes> lanes;
    for (std::size_t i = 0; i < kScoreLanes; i += kFloats) {
      Floats most = load(logits + i);
      for (std::size_t key = kScoreLanes; key < n_keys; key += kScoreLanes) {
        const Floats own = load(logits + key + i);
        most = most < own ? own : most;
      }
      store(most, lanes.data() + i);
    }
    const float most = *std::max_element(lanes.begin(), lanes.end());
    *sum = 1.0F;
    if (most < least) return most;
    for (std::size_t i = 0; i < kScoreLanes; i += kFloats) {
      Floats own = {};
      for (std::size_t key = 0; key < n_keys; key += kScoreLanes) own += exp_of(load(logits + key + i) - most);
      store(own, lanes.data() + i);
    }
    *sum = 0.0F;
    for (const float lane : lanes) *sum += lane;
    return most;
  }
};

}  // namespace
}  // namespace ebb
