// The loops of model/score_kernels.h, for whatever instruction set the file that includes this is built for: kVectorBytes is what one of
// its registers holds. What g++ 12 cannot say of vectors whose width is a parameter, the file says: Lanes::widened (bytes to numbers),
// of_halves, to_floats, and add_products, which multiplies the two 16 bits of a lane with those of another and adds both.
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

template <std::size_t kVectorBytes, class Lanes>
struct ScoreLoops {
  using Floats [[gnu::vector_size(kVectorBytes)]] = float;
  using Ints [[gnu::vector_size(kVectorBytes)]] = std::int32_t;
  static constexpr std::size_t kFloats = kVectorBytes / sizeof(float);

  // For the last rows, where registers are wider than kRowLanes.
  using Half = ScoreLoops<kVectorBytes / 2, typename Lanes::Half>;

  // Adding 1.5 2^23 rounds to a whole number, which then stands in the low bits.
  static constexpr float kRound = 12582912.0F;
  static constexpr std::int32_t kRoundBits = 0x4B400000;

  // The lowest code of each of two channels.
  static constexpr std::int32_t kCodes = 0x30003;

  static Floats load(const float* p) {
    Floats x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  static void store(const Floats& x, float* p) { __builtin_memcpy(p, &x, sizeof x); }
  static Ints load(const std::int32_t* p) {
    Ints x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  static void store(const Ints& x, std::int32_t* p) { __builtin_memcpy(p, &x, sizeof x); }
  static Ints bits_of(const Floats& x) {
    Ints bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
  }
  static Floats greater(const Floats& a, const Floats& b) { return a < b ? b : a; }

  // --- logits of numbers ---

  // Four rows by two vectors of keys: each key is read once for four rows.
  static void find_tile(const float* q, std::size_t n_dims, const float* plane, std::size_t n_keys, float* out,
                        std::size_t stride) {
    const float* const qb = q + n_dims;
    const float* const qc = qb + n_dims;
    const float* const qd = qc + n_dims;
    Floats a0 = {}, a1 = {}, b0 = {}, b1 = {}, c0 = {}, c1 = {}, d0 = {}, d1 = {};
    for (std::size_t d = 0; d < n_dims; ++d, plane += n_keys) {
      const Floats k0 = load(plane);
      const Floats k1 = load(plane + kFloats);
      a0 += q[d] * k0;
      a1 += q[d] * k1;
      b0 += qb[d] * k0;
      b1 += qb[d] * k1;
      c0 += qc[d] * k0;
      c1 += qc[d] * k1;
      d0 += qd[d] * k0;
      d1 += qd[d] * k1;
    }
    store(a0, out);
    store(a1, out + kFloats);
    store(b0, out + stride);
    store(b1, out + stride + kFloats);
    store(c0, out + 2 * stride);
    store(c1, out + 2 * stride + kFloats);
    store(d0, out + 3 * stride);
    store(d1, out + 3 * stride + kFloats);
  }

  static void find_vector(const float* q, std::size_t n_dims, const float* plane, std::size_t n_keys, float* out) {
    Floats sum = {};
    for (std::size_t d = 0; d < n_dims; ++d, plane += n_keys) sum += q[d] * load(plane);
    store(sum, out);
  }

  static void find_logits(const float* queries, std::size_t n_rows, std::size_t n_dims, const float* planes,
                          std::size_t n_keys, float* logits, std::size_t stride) {
    const std::size_t n_tiled = n_keys % (2 * kFloats) == 0 ? n_rows / 4 * 4 : 0;
    for (std::size_t row = 0; row < n_tiled; row += 4) {
      for (std::size_t key = 0; key < n_keys; key += 2 * kFloats) {
        find_tile(queries + row * n_dims, n_dims, planes + key, n_keys, logits + row * stride + key, stride);
      }
    }
    for (std::size_t row = n_tiled; row < n_rows; ++row) {
      for (std::size_t key = 0; key < n_keys; key += kFloats) {
        find_vector(queries + row * n_dims, n_dims, planes + key, n_keys, logits + row * stride + key);
      }
    }
  }

  // --- logits of codes ---

  static void widen_halves(const std::uint16_t* halves, std::size_t n, float* out) {
    std::size_t i = 0;
    for (; i + kFloats <= n; i += kFloats) store(Lanes::of_halves(halves + i), out + i);
    if (i == n) return;
    std::array<std::uint16_t, kFloats> rest = {};
    std::copy_n(halves + i, n - i, rest.begin());
    const Floats last = Lanes::of_halves(rest.data());
    __builtin_memcpy(out + i, &last, (n - i) * sizeof(float));
  }

  // A byte has the codes of keys that lie a quarter of all apart.
  static void spread_codes(const unsigned char* sketch, std::size_t n_dims, std::size_t n_keys, std::int32_t* pairs) {
    const std::size_t quarter = n_keys / 4;
    if (quarter % kFloats == 0) return spread_long(sketch, n_dims, quarter, pairs);
    if (kFloats % quarter == 0) return spread_short(sketch, n_dims, quarter, pairs);
    for (std::size_t d = 0; d < n_dims; d += 2, pairs += n_keys) {
      const unsigned char* const even = sketch + d * quarter;
      for (std::size_t key = 0; key < n_keys; ++key) {
        const std::size_t i = key % quarter;
        const std::int32_t both = even[i] | (d + 1 < n_dims ? even[quarter + i] << 16 : 0);
        pairs[key] = (both >> (2 * (key / quarter))) & kCodes;
      }
    }
  }

  // Registers of bytes, four times each.
  static void spread_long(const unsigned char* sketch, std::size_t n_dims, std::size_t quarter, std::int32_t* pairs) {
    for (std::size_t d = 0; d < n_dims; d += 2, pairs += 4 * quarter) {
      const unsigned char* const even = sketch + d * quarter;
      const bool has_odd = d + 1 < n_dims;
      for (std::size_t i = 0; i < quarter; i += kFloats) {
        const Ints both = Lanes::widened(even + i) | (has_odd ? Lanes::widened(even + quarter + i) << 16 : Ints{});
        store(both & kCodes, pairs + i);
        store((both >> 2) & kCodes, pairs + quarter + i);
        store((both >> 4) & kCodes, pairs + 2 * quarter + i);
        store((both >> 6) & kCodes, pairs + 3 * quarter + i);
      }
    }
  }

  // The same bytes several times in a register, which has the codes of several quarters.
  static void spread_short(const unsigned char* sketch, std::size_t n_dims, std::size_t quarter, std::int32_t* pairs) {
    const std::size_t n_keys = 4 * quarter;
    std::array<std::int32_t, kFloats> shifts;
    for (std::size_t i = 0; i < kFloats; ++i) shifts[i] = static_cast<std::int32_t>(2 * (i / quarter));
    const Ints shift = load(shifts.data());
    const auto quarters = static_cast<std::int32_t>(kFloats / quarter);
    for (std::size_t d = 0; d < n_dims; d += 2, pairs += n_keys) {
      const Ints even = repeated(sketch + d * quarter, quarter);
      const Ints odd = d + 1 < n_dims ? repeated(sketch + (d + 1) * quarter, quarter) : Ints{};
      Ints both = (even | (odd << 16)) >> shift;
      for (std::size_t key = 0; key < n_keys; key += kFloats, both >>= 2 * quarters) store(both & kCodes, pairs + key);
    }
  }
  // n bytes, a multiple of 4 that divides kFloats.
  static Ints repeated(const unsigned char* bytes, std::size_t n) {
    std::array<unsigned char, kFloats> all;
    for (std::size_t i = 0; i < kFloats; i += 4) __builtin_memcpy(all.data() + i, bytes + i % n, 4);
    return Lanes::widened(all.data());
  }

  static void weigh_steps(const float* queries, std::size_t n_rows, std::size_t n_dims, const float* least,
                          const float* step, const SketchRows& out) {
    weigh_steps_from(0, queries, n_rows, n_dims, least, step, out);
  }
  static void weigh_steps_from(std::size_t row, const float* queries, std::size_t n_rows, std::size_t n_dims,
                               const float* least, const float* step, const SketchRows& out) {
    constexpr float kMost = 32767.0F;
    constexpr float kNothing = 1e-30F;
    for (; row + kFloats <= n_rows; row += kFloats) {
      const float* const q = queries + row;
      Floats base = {};
      Floats most = {};
      for (std::size_t d = 0; d < n_dims; ++d) {
        const Floats x = load(q + d * n_rows);
        base += x * least[d];
        const Floats product = x * step[d];
        most = greater(most, greater(product, -product));
      }
      const Floats none = Floats{} + kNothing;
      const Floats per_unit = kMost / greater(most, none);
      store(base, out.base + row);
      store(most * (1.0F / kMost), out.unit + row);
      for (std::size_t d = 0; d < n_dims; d += 2) {
        const Ints even = whole(load(q + d * n_rows) * step[d] * per_unit);
        const Ints odd = d + 1 < n_dims ? whole(load(q + (d + 1) * n_rows) * step[d + 1] * per_unit) : Ints{};
        store((even & 0xFFFF) | (odd << 16), out.steps + d / 2 * n_rows + row);
      }
    }
    if constexpr (kFloats > kRowLanes) Half::weigh_steps_from(row, queries, n_rows, n_dims, least, step, out);
  }
  static Ints whole(const Floats& x) { return bits_of(x + kRound) - kRoundBits; }

  static Floats logit_of(const Ints& sum, const Floats& base, const Floats& unit) {
    return base + unit * Lanes::to_floats(sum);
  }

  // Four keys by two vectors of rows.
  static void find_code_tile(const SketchRows& rows, std::size_t n_rows, std::size_t row, std::size_t n_pairs,
                             const std::int32_t* pairs, std::size_t n_slots, float* out) {
    const std::int32_t* steps = rows.steps + row;
    Ints a0 = {}, a1 = {}, b0 = {}, b1 = {}, c0 = {}, c1 = {}, d0 = {}, d1 = {};
    for (std::size_t p = 0; p < n_pairs; ++p, steps += n_rows, pairs += n_slots) {
      const Ints q0 = load(steps);
      const Ints q1 = load(steps + kFloats);
      const Ints a = Ints{} + pairs[0];
      const Ints b = Ints{} + pairs[1];
      const Ints c = Ints{} + pairs[2];
      const Ints d = Ints{} + pairs[3];
      a0 = Lanes::add_products(a0, a, q0);
      a1 = Lanes::add_products(a1, a, q1);
      b0 = Lanes::add_products(b0, b, q0);
      b1 = Lanes::add_products(b1, b, q1);
      c0 = Lanes::add_products(c0, c, q0);
      c1 = Lanes::add_products(c1, c, q1);
      d0 = Lanes::add_products(d0, d, q0);
      d1 = Lanes::add_products(d1, d, q1);
    }
    const Floats base0 = load(rows.base + row);
    const Floats base1 = load(rows.base + row + kFloats);
    const Floats unit0 = load(rows.unit + row);
    const Floats unit1 = load(rows.unit + row + kFloats);
    store(logit_of(a0, base0, unit0), out);
    store(logit_of(a1, base1, unit1), out + kFloats);
    store(logit_of(b0, base0, unit0), out + 2 * kFloats);
    store(logit_of(b1, base1, unit1), out + 3 * kFloats);
    store(logit_of(c0, base0, unit0), out + 4 * kFloats);
    store(logit_of(c1, base1, unit1), out + 5 * kFloats);
    store(logit_of(d0, base0, unit0), out + 6 * kFloats);
    store(logit_of(d1, base1, unit1), out + 7 * kFloats);
  }

  // Four keys by one.
  static void find_code_vectors(const SketchRows& rows, std::size_t n_rows, std::size_t row, std::size_t n_pairs,
                                const std::int32_t* pairs, std::size_t n_slots, float* out) {
    const std::int32_t* steps = rows.steps + row;
    Ints a = {}, b = {}, c = {}, d = {};
    for (std::size_t p = 0; p < n_pairs; ++p, steps += n_rows, pairs += n_slots) {
      const Ints q = load(steps);
      a = Lanes::add_products(a, Ints{} + pairs[0], q);
      b = Lanes::add_products(b, Ints{} + pairs[1], q);
      c = Lanes::add_products(c, Ints{} + pairs[2], q);
      d = Lanes::add_products(d, Ints{} + pairs[3], q);
    }
    const Floats base = load(rows.base + row);
    const Floats unit = load(rows.unit + row);
    store(logit_of(a, base, unit), out);
    store(logit_of(b, base, unit), out + kFloats);
    store(logit_of(c, base, unit), out + 2 * kFloats);
    store(logit_of(d, base, unit), out + 3 * kFloats);
  }

  // logits[key * stride + row], of one vector of rows.
  static void sum_weights(const float* logits, std::size_t n_keys, std::size_t stride, float* out_most,
                          float* out_sum) {
    Floats most = load(logits);
    for (std::size_t key = 1; key < n_keys; ++key) most = greater(most, load(logits + key * stride));
    Floats sum = {};
    for (std::size_t key = 0; key < n_keys; ++key) sum += exp_of(load(logits + key * stride) - most);
    store(most, out_most);
    store(sum, out_sum);
  }

  static void weigh_codes(const SketchRows& rows, std::size_t n_rows, std::size_t n_dims, const SketchCodes& codes,
                          float* most, float* sums) {
    weigh_codes_from(0, rows, n_rows, n_dims, codes, most, sums);
  }
  static void weigh_codes_from(std::size_t row, const SketchRows& rows, std::size_t n_rows, std::size_t n_dims,
                               const SketchCodes& codes, float* most, float* sums) {
    const std::size_t n_pairs = (n_dims + 1) / 2;
    for (; row + 2 * kFloats <= n_rows; row += 2 * kFloats) {
      for (std::size_t key = 0; key < codes.n_keys; key += 4) {
        find_code_tile(rows, n_rows, row, n_pairs, codes.pairs + key, codes.n_slots, codes.scratch + key * 2 * kFloats);
      }
      for (std::size_t i = 0; i < 2 * kFloats; i += kFloats) {
        sum_weights(codes.scratch + i, codes.n_keys, 2 * kFloats, most + row + i, sums + row + i);
      }
    }
    for (; row + kFloats <= n_rows; row += kFloats) {
      for (std::size_t key = 0; key < codes.n_keys; key += 4) {
        find_code_vectors(rows, n_rows, row, n_pairs, codes.pairs + key, codes.n_slots, codes.scratch + key * kFloats);
      }
      sum_weights(codes.scratch, codes.n_keys, kFloats, most + row, sums + row);
    }
    if constexpr (kFloats > kRowLanes) Half::weigh_codes_from(row, rows, n_rows, n_dims, codes, most, sums);
  }

  // --- softmax ---

  // exp of what is not above 0: 2^n times a polynomial in what is left, Taylor's of degree 5.
  static Floats exp_of(Floats x) {
    const Floats least = Floats{} - 80.0F;
    x = x < least ? least : x;
    const Floats t = x * 1.44269504F;
    const Floats rounded = t + kRound;
    const Floats f = (t - (rounded - kRound)) * 0.693147181F;
    const Floats p = 1.0F + f * (1.0F + f * (0.5F + f * (0.166666667F + f * (0.0416666667F + f * 0.00833333333F))));
    const Ints power = (bits_of(rounded) - kRoundBits + 127) << 23;
    Floats two_n;
    __builtin_memcpy(&two_n, &power, sizeof two_n);
    return p * two_n;
  }

  static float find_most(const float* x, std::size_t n) {
    std::array<float, kScoreLanes> lanes;
    for (std::size_t i = 0; i < kScoreLanes; i += kFloats) {
      Floats most = load(x + i);
      for (std::size_t at = kScoreLanes; at < n; at += kScoreLanes) most = greater(most, load(x + at + i));
      store(most, lanes.data() + i);
    }
    return *std::max_element(lanes.begin(), lanes.end());
  }

  static void weigh(const float* most, const float* sums, std::size_t n, std::size_t n_rows, float* weights,
                    float* totals) {
    weigh_from(0, most, sums, n, n_rows, weights, totals);
  }
  static void weigh_from(std::size_t row, const float* most, const float* sums, std::size_t n, std::size_t n_rows,
                         float* weights, float* totals) {
    for (; row + kFloats <= n_rows; row += kFloats) {
      Floats greatest = load(most + row);
      for (std::size_t i = 1; i < n; ++i) greatest = greater(greatest, load(most + i * n_rows + row));
      Floats total = {};
      for (std::size_t at = row; at < n * n_rows; at += n_rows) {
        const Floats own = load(sums + at) * exp_of(load(most + at) - greatest);
        store(own, weights + at);
        total += own;
      }
      store(total, totals + row);
    }
    if constexpr (kFloats > kRowLanes) Half::weigh_from(row, most, sums, n, n_rows, weights, totals);
  }

  static constexpr ScoreKernels all() {
    return {.find_logits = find_logits,
            .find_most = find_most,
            .widen_halves = widen_halves,
            .spread_codes = spread_codes,
            .weigh_steps = weigh_steps,
            .weigh_codes = weigh_codes,
            .weigh = weigh};
  }
};

}  // namespace
}  // namespace ebb
