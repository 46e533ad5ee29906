// The loops of model/score_kernels.h, for whatever instruction set the file that includes this is built for: kVectorBytes is what one of
// its registers holds. What g++ 12 cannot say of vectors whose width is a parameter, the file says: Lanes::widened (bytes to numbers),
// repeated (the same of so few bytes, several times), narrowed (back), of_halves, to_floats, add_products, which multiplies the four
// bytes of a lane with the signed ones of another and adds all, and looked_up, which takes each byte of a lane for the index of one of
// sixteen.
//
// Vectors are the compiler's own, one variable each (model/expected_kernels_body.h says why). Whatever their width, an element sees
// the same operations in the same order; the lanes of a sum are kScoreLanes everywhere.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "model/score_kernels.h"
#include "model/score_vectors.h"

namespace ebb {
namespace {

template <std::size_t kVectorBytes, class Lanes>
struct ScoreLoops : ScoreVectors<kVectorBytes> {
  using Vectors = ScoreVectors<kVectorBytes>;
  using typename Vectors::Floats;
  using typename Vectors::Ints;
  using Vectors::exp_of;
  using Vectors::greater;
  using Vectors::kFloats;
  using Vectors::load;
  using Vectors::store;
  using Vectors::whole;

  // For the last rows, where registers are wider than kRowLanes.
  using Half = ScoreLoops<kVectorBytes / 2, typename Lanes::Half>;

  // The lowest code of each of four channels, and where each channel's levels stand in a table of them.
  static constexpr std::int32_t kCodes = 0x03030303;
  static constexpr std::int32_t kTables = 0x0C080400;

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

  static void widen_halves(const std::uint16_t* halves, std::size_t n, float* out) {
    std::size_t i = 0;
    for (; i + kFloats <= n; i += kFloats) store(Lanes::of_halves(halves + i), out + i);
    if (i == n) return;
    std::array<std::uint16_t, kFloats> rest = {};
    std::copy_n(halves + i, n - i, rest.begin());
    const Floats last = Lanes::of_halves(rest.data());
    __builtin_memcpy(out + i, &last, (n - i) * sizeof(float));
  }

  // --- bytes ---

  static void weigh_steps(const float* queries, std::size_t n_rows, std::size_t n_dims, const float* least,
                          const float* step, const ByteRows& out) {
    weigh_steps_from(0, queries, n_rows, n_dims, least, step, out);
  }
  static void weigh_steps_from(std::size_t row, const float* queries, std::size_t n_rows, std::size_t n_dims,
                               const float* least, const float* step, const ByteRows& out) {
    constexpr float kMost = 127.0F;
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
      for (std::size_t d = 0; d < n_dims; d += 4) {
        const float* const own = q + d * n_rows;
        const Ints a = whole(load(own) * step[d] * per_unit);
        const Ints b = whole(load(own + n_rows) * step[d + 1] * per_unit);
        const Ints c = whole(load(own + 2 * n_rows) * step[d + 2] * per_unit);
        const Ints e = whole(load(own + 3 * n_rows) * step[d + 3] * per_unit);
        store((a & 0xFF) | ((b & 0xFF) << 8) | ((c & 0xFF) << 16) | (e << 24), out.quads + d / 4 * n_rows + row);
      }
    }
    if constexpr (kFloats > kRowLanes) Half::weigh_steps_from(row, queries, n_rows, n_dims, least, step, out);
  }

  static BoxWidths join_boxes(const float* weights, const Box<const float>& own, const Box<const float>& other,
                              std::size_t n_dims, const Box<float>& around) {
    std::array<float, kScoreLanes> own_width, width;
    for (std::size_t i = 0; i < kScoreLanes; i += kFloats) {
      Floats own_sum = {};
      Floats sum = {};
      for (std::size_t d = i; d < n_dims; d += kScoreLanes) {
        const Floats weight = load(weights + d);
        const Floats own_least = load(own.least + d);
        const Floats own_greatest = load(own.greatest + d);
        const Floats least = -greater(-own_least, -load(other.least + d));
        const Floats greatest = greater(own_greatest, load(other.greatest + d));
        store(least, around.least + d);
        store(greatest, around.greatest + d);
        own_sum += weight * (own_greatest - own_least);
        sum += weight * (greatest - least);
      }
      store(own_sum, own_width.data() + i);
      store(sum, width.data() + i);
    }
    BoxWidths widths;
    for (std::size_t i = 0; i < kScoreLanes; ++i) {
      widths.own += own_width[i];
      widths.around += width[i];
    }
    return widths;
  }

  static void find_levels(const float* x, const float* least, const float* per_step, std::size_t n_dims,
                          unsigned char* out) {
    for (std::size_t d = 0; d < n_dims; d += kFloats) {
      Lanes::narrowed(level_of(load(x + d), load(least + d), load(per_step + d)), out + d);
    }
  }
  static void find_code_levels(const float* own, const float* own_step, const float* least, const float* per_step,
                               std::size_t n_dims, unsigned char* levels) {
    for (std::size_t d = 0; d < n_dims; d += kFloats) {
      const Floats first = load(own + d);
      const Floats step = load(own_step + d);
      const Floats from = load(least + d);
      const Floats per = load(per_step + d);
      const Ints all = four(level_of(first, from, per), level_of(first + step, from, per),
                            level_of(first + 2.0F * step, from, per), level_of(first + 3.0F * step, from, per));
      __builtin_memcpy(levels + 4 * d, &all, sizeof all);
    }
  }
  static Ints level_of(const Floats& x, const Floats& least, const Floats& per_step) {
    const Floats most = Floats{} + static_cast<float>(kMostLevel);
    const Floats level = greater((x - least) * per_step, Floats{});
    return whole(level < most ? level : most);
  }

  // A byte has the codes of keys that lie a quarter of all apart.
  static void spread_codes(const unsigned char* sketch, const unsigned char* levels, std::size_t n_dims,
                           std::size_t n_keys, std::int32_t* quads) {
    const std::size_t quarter = n_keys / 4;
    // Which quarter a lane is of, where a register has several.
    std::array<std::int32_t, kFloats> shifts = {};
    for (std::size_t i = quarter; i < kFloats; ++i) shifts[i] = shifts[i - quarter] + 2;
    for (std::size_t d = 0; d < n_dims; d += 4, quads += n_keys) {
      const unsigned char* const codes = sketch + d * quarter;
      const unsigned char* const table = levels + d * 4;
      if (quarter % kFloats == 0) {
        spread_long(codes, table, quarter, quads);
      } else if (kFloats % quarter == 0) {
        spread_short(codes, table, quarter, load(shifts.data()), quads);
      } else {
        spread_any(codes, table, quarter, quads);
      }
    }
  }
  static Ints four(const Ints& a, const Ints& b, const Ints& c, const Ints& d) {
    return a | (b << 8) | (c << 16) | (d << 24);
  }
  static Ints levels_of(const Ints& codes, const unsigned char* table) {
    return Lanes::looked_up(table, (codes & kCodes) | kTables);
  }
  static void spread_any(const unsigned char* codes, const unsigned char* table, std::size_t quarter,
                         std::int32_t* quads) {
    for (std::size_t key = 0; key < 4 * quarter; ++key) {
      std::array<unsigned char, 4> own;
      for (std::size_t c = 0; c < 4; ++c) {
        own[c] = table[4 * c + ((codes[c * quarter + key % quarter] >> (2 * (key / quarter))) & 3)];
      }
      __builtin_memcpy(quads + key, own.data(), 4);
    }
  }
  // Registers of bytes, four times each.
  static void spread_long(const unsigned char* codes, const unsigned char* table, std::size_t quarter,
                          std::int32_t* quads) {
    for (std::size_t i = 0; i < quarter; i += kFloats) {
      const unsigned char* const own = codes + i;
      Ints all = four(Lanes::widened(own), Lanes::widened(own + quarter), Lanes::widened(own + 2 * quarter),
                      Lanes::widened(own + 3 * quarter));
      for (std::size_t part = 0; part < 4; ++part, all >>= 2) {
        store(levels_of(all, table), quads + part * quarter + i);
      }
    }
  }
  // The same bytes several times in a register, which has the codes of several quarters.
  static void spread_short(const unsigned char* codes, const unsigned char* table, std::size_t quarter,
                           const Ints& shifts, std::int32_t* quads) {
    const auto quarters = static_cast<std::int32_t>(kFloats / quarter);
    Ints all = four(Lanes::repeated(codes, quarter), Lanes::repeated(codes + quarter, quarter),
                    Lanes::repeated(codes + 2 * quarter, quarter), Lanes::repeated(codes + 3 * quarter, quarter));
    all >>= shifts;
    for (std::size_t key = 0; key < 4 * quarter; key += kFloats, all >>= 2 * quarters) {
      store(levels_of(all, table), quads + key);
    }
  }

  static Floats logit_of(const Ints& sum, const Floats& base, const Floats& unit) {
    return base + unit * Lanes::to_floats(sum);
  }

  // Four keys by two vectors of rows; logits of a key lie `stride` apart.
  static void find_byte_tile(const ByteRows& rows, std::size_t n_rows, std::size_t row, std::size_t n_quads,
                             const std::int32_t* key, const ByteKeys& keys, float* out, std::size_t stride) {
    const std::int32_t* q = rows.quads + row;
    const std::size_t next = keys.key_stride;
    Ints a0 = {}, a1 = {}, b0 = {}, b1 = {}, c0 = {}, c1 = {}, d0 = {}, d1 = {};
    for (std::size_t j = 0; j < n_quads; ++j, q += n_rows, key += keys.quad_stride) {
      const Ints q0 = load(q);
      const Ints q1 = load(q + kFloats);
      const Ints a = Ints{} + key[0];
      const Ints b = Ints{} + key[next];
      const Ints c = Ints{} + key[2 * next];
      const Ints d = Ints{} + key[3 * next];
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
    store(logit_of(b0, base0, unit0), out + stride);
    store(logit_of(b1, base1, unit1), out + stride + kFloats);
    store(logit_of(c0, base0, unit0), out + 2 * stride);
    store(logit_of(c1, base1, unit1), out + 2 * stride + kFloats);
    store(logit_of(d0, base0, unit0), out + 3 * stride);
    store(logit_of(d1, base1, unit1), out + 3 * stride + kFloats);
  }

  // Four keys by one.
  static void find_byte_vectors(const ByteRows& rows, std::size_t n_rows, std::size_t row, std::size_t n_quads,
                                const std::int32_t* key, const ByteKeys& keys, float* out, std::size_t stride) {
    const std::int32_t* q = rows.quads + row;
    const std::size_t next = keys.key_stride;
    Ints a = {}, b = {}, c = {}, d = {};
    for (std::size_t j = 0; j < n_quads; ++j, q += n_rows, key += keys.quad_stride) {
      const Ints own = load(q);
      a = Lanes::add_products(a, Ints{} + key[0], own);
      b = Lanes::add_products(b, Ints{} + key[next], own);
      c = Lanes::add_products(c, Ints{} + key[2 * next], own);
      d = Lanes::add_products(d, Ints{} + key[3 * next], own);
    }
    const Floats base = load(rows.base + row);
    const Floats unit = load(rows.unit + row);
    store(logit_of(a, base, unit), out);
    store(logit_of(b, base, unit), out + stride);
    store(logit_of(c, base, unit), out + 2 * stride);
    store(logit_of(d, base, unit), out + 3 * stride);
  }

  // Four keys' rows from `row` on, as many as there are registers for.
  static void multiply_bytes(const ByteRows& rows, std::size_t n_rows, std::size_t n_dims, const ByteKeys& keys,
                             float* logits) {
    for (std::size_t key = 0; key < keys.n_keys; key += kKeysTogether) {
      multiply_from(0, rows, n_rows, n_dims / 4, keys.quads + key * keys.key_stride, keys, logits + key * n_rows);
    }
  }
  static void multiply_from(std::size_t row, const ByteRows& rows, std::size_t n_rows, std::size_t n_quads,
                            const std::int32_t* key, const ByteKeys& keys, float* out) {
    for (; row + 2 * kFloats <= n_rows; row += 2 * kFloats) {
      find_byte_tile(rows, n_rows, row, n_quads, key, keys, out + row, n_rows);
    }
    for (; row + kFloats <= n_rows; row += kFloats) {
      find_byte_vectors(rows, n_rows, row, n_quads, key, keys, out + row, n_rows);
    }
    if constexpr (kFloats > kRowLanes) Half::multiply_from(row, rows, n_rows, n_quads, key, keys, out);
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

  static void weigh_keys(const ByteRows& rows, std::size_t n_rows, std::size_t n_dims, const ByteKeys& keys,
                         std::size_t n_summed, float* scratch, float* most, float* sums) {
    weigh_keys_from(0, rows, n_rows, n_dims / 4, keys, n_summed, scratch, most, sums);
  }
  static void weigh_keys_from(std::size_t row, const ByteRows& rows, std::size_t n_rows, std::size_t n_quads,
                              const ByteKeys& keys, std::size_t n_summed, float* scratch, float* most, float* sums) {
    for (; row + 2 * kFloats <= n_rows; row += 2 * kFloats) {
      for (std::size_t key = 0; key < keys.n_keys; key += kKeysTogether) {
        find_byte_tile(rows, n_rows, row, n_quads, keys.quads + key * keys.key_stride, keys,
                       scratch + key * 2 * kFloats, 2 * kFloats);
      }
      for (std::size_t i = 0; i < 2 * kFloats; i += kFloats) {
        sum_weights(scratch + i, n_summed, 2 * kFloats, most + row + i, sums + row + i);
      }
    }
    for (; row + kFloats <= n_rows; row += kFloats) {
      for (std::size_t key = 0; key < keys.n_keys; key += kKeysTogether) {
        find_byte_vectors(rows, n_rows, row, n_quads, keys.quads + key * keys.key_stride, keys, scratch + key * kFloats,
                          kFloats);
      }
      sum_weights(scratch, n_summed, kFloats, most + row, sums + row);
    }
    if constexpr (kFloats > kRowLanes)
      Half::weigh_keys_from(row, rows, n_rows, n_quads, keys, n_summed, scratch, most, sums);
  }

  // --- softmax ---

  static void find_most(const float* x, std::size_t n, std::size_t n_rows, float* most) {
    for (std::size_t i = 0; i < n; ++i, x += n_rows) raise_from(0, x, n_rows, most);
  }
  static void raise_from(std::size_t row, const float* x, std::size_t n_rows, float* most) {
    for (; row + kFloats <= n_rows; row += kFloats) store(greater(load(most + row), load(x + row)), most + row);
    if constexpr (kFloats > kRowLanes) Half::raise_from(row, x, n_rows, most);
  }

  static void find_behind(const float* x, const float* most, std::size_t n, std::size_t n_rows, float* behind) {
    for (std::size_t i = 0; i < n; ++i, x += n_rows) behind[i] = -most_of(x, most, n_rows);
  }
  // The largest of x - most, in whatever order.
  static float most_of(const float* x, const float* most, std::size_t n_rows) {
    std::size_t row = 0;
    float best = -1e30F;
    if (n_rows >= kFloats) {
      Floats all = load(x) - load(most);
      for (row = kFloats; row + kFloats <= n_rows; row += kFloats) {
        all = greater(all, load(x + row) - load(most + row));
      }
      std::array<float, kFloats> lanes;
      store(all, lanes.data());
      best = *std::max_element(lanes.begin(), lanes.end());
    }
    if constexpr (kFloats > kRowLanes) {
      if (row < n_rows) best = std::max(best, Half::most_of(x + row, most + row, n_rows - row));
    }
    return best;
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
            .widen_halves = widen_halves,
            .join_boxes = join_boxes,
            .weigh_steps = weigh_steps,
            .find_levels = find_levels,
            .find_code_levels = find_code_levels,
            .spread_codes = spread_codes,
            .multiply_bytes = multiply_bytes,
            .weigh_keys = weigh_keys,
            .find_most = find_most,
            .find_behind = find_behind,
            .weigh = weigh};
  }
};

}  // namespace
}  // namespace ebb
