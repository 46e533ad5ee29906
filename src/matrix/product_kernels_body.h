// The loops of matrix/product_kernels.h, for whatever instruction set the file that includes this is built for: `Lanes` says what its registers
// do, for kLanes of a panel's rows at once.
//
// Thread rule: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "matrix/float_loops.h"
#include "matrix/product_codes.h"
#include "matrix/product_kernels.h"
#include "matrix/row_tiles.h"

namespace ebb {
namespace {

template <class Lanes>
struct ProductLoops {
  using Floats = typename Lanes::Floats;
  using Ints = typename Lanes::Ints;
  using Bytes = typename Lanes::Bytes;
  static constexpr std::size_t kParts = kPanelRows / Lanes::kLanes;

  // What a row's block with that of a panel adds to their product.
  template <WeightKind kKind>
  [[gnu::always_inline]] static Floats add_block(Floats sum, const RoundedBlock& x, const CodeBlock<Lanes, kKind>& w) {
    constexpr CodeTraits kTraits = code_traits(kKind);
    const auto dot = [&](std::size_t first, std::size_t n, std::int32_t minus_sum) {
      Ints products = Lanes::template begin<kTraits.offset>(minus_sum);
#pragma GCC unroll 8
      for (std::size_t q = first; q < first + n; ++q) {
        std::int32_t quad;
        __builtin_memcpy(&quad, x.values.data() + q * kQuad, sizeof quad);
        products = Lanes::template add_products<kTraits.offset>(products, w.quads[q], quad);
      }
      return Lanes::to_floats(products);
    };
    if constexpr (kTraits.n_scales == 1) {
      sum = Lanes::fused(dot(0, kBlockQuads, x.minus_sum), w.scales[0] * x.scale, sum);
    } else {
      constexpr std::size_t kHalf = kBlockQuads / 2;
      sum = Lanes::fused(dot(0, kHalf, x.minus_first_sum), w.scales[0] * x.scale, sum);
      sum = Lanes::fused(dot(kHalf, kHalf, x.minus_sum - x.minus_first_sum), w.scales[1] * x.scale, sum);
    }
    if constexpr (kTraits.has_least) sum = Lanes::fused(w.least, Lanes::repeated(x.minus_scaled_sum), sum);
    return sum;
  }

  template <WeightKind kKind, std::size_t kRows>
  static void multiply_tile(const std::byte* panel, const RoundedRows& rows, std::size_t first, const ProductOut& out) {
    using Code = PackedCode<Lanes, kKind>;
    const std::byte* const scales = panel + rows.n_blocks * Code::kShape.code_bytes;
    const RoundedBlock* const x = rows.data + first * rows.n_blocks;
    for (std::size_t part = 0; part < kParts; ++part) {
      Floats sums[kRows] = {};
      for (std::size_t b = 0; b < rows.n_blocks; b += Code::kBlocks) {
        const Code code(panel + b * Code::kShape.code_bytes, scales + b / Code::kBlocks * Code::kShape.scale_bytes,
                        part);
        for (std::size_t i = 0; i < Code::kBlocks; ++i) {
          CodeBlock<Lanes, kKind> w;
          code.read(i, w);
#pragma GCC unroll 8
          for (std::size_t r = 0; r < kRows; ++r) sums[r] = add_block<kKind>(sums[r], x[r * rows.n_blocks + b + i], w);
        }
      }
      for (std::size_t r = 0; r < kRows; ++r)
        store_part<Lanes>(sums[r], part, out.data + (first + r) * out.stride, out.n);
    }
  }

  template <WeightKind kKind>
  [[gnu::always_inline]] static void read_wide(const WidePanel& panel, std::size_t b, std::size_t part,
                                               CodeBlock<Lanes, kKind>& w) {
    const std::byte* const codes = panel.codes + b * kBlockQuads * kVectorBytes + part * Lanes::kLanes * kQuad;
#pragma GCC unroll 8
    for (std::size_t q = 0; q < kBlockQuads; ++q) w.quads[q] = Lanes::load(codes + q * kVectorBytes);
    const float* scales = panel.scales + b * wide_scales(kKind) + part * Lanes::kLanes;
    for (std::size_t i = 0; i < code_traits(kKind).n_scales; ++i, scales += kPanelRows)
      w.scales[i] = Lanes::load(scales);
    if constexpr (code_traits(kKind).has_least) w.least = Lanes::load(scales);
  }

  template <WeightKind kKind, std::size_t kRows>
  static void multiply_wide_tile(const std::array<WidePanel, 2>& panels, const RoundedRows& rows, std::size_t first,
                                 const std::array<ProductOut, 2>& out) {
    const RoundedBlock* const x = rows.data + first * rows.n_blocks;
    for (std::size_t part = 0; part < kParts; ++part) {
      Floats left[kRows] = {};
      Floats right[kRows] = {};
      for (std::size_t b = 0; b < rows.n_blocks; ++b) {
        CodeBlock<Lanes, kKind> w;
        CodeBlock<Lanes, kKind> v;
        read_wide<kKind>(panels[0], b, part, w);
        read_wide<kKind>(panels[1], b, part, v);
#pragma GCC unroll 8
        for (std::size_t r = 0; r < kRows; ++r) {
          const RoundedBlock& block = x[r * rows.n_blocks + b];
          left[r] = add_block<kKind>(left[r], block, w);
          right[r] = add_block<kKind>(right[r], block, v);
        }
      }
      for (std::size_t r = 0; r < kRows; ++r) {
        store_part<Lanes>(left[r], part, out[0].data + (first + r) * out[0].stride, out[0].n);
        store_part<Lanes>(right[r], part, out[1].data + (first + r) * out[1].stride, out[1].n);
      }
    }
  }

  template <WeightKind kKind>
  static void multiply_kind(const std::byte* panel, const RoundedRows& rows, const ProductOut& out) {
    for_row_tiles<Lanes::kRowsTogether>(rows.n_rows, [&]<std::size_t kRows>(std::size_t first) {
      multiply_tile<kKind, kRows>(panel, rows, first, out);
    });
  }

  template <WeightKind kKind>
  static void multiply_wide_kind(const std::array<WidePanel, 2>& panels, const RoundedRows& rows,
                                 const std::array<ProductOut, 2>& out) {
    for_row_tiles<Lanes::kRowsTogether>(rows.n_rows, [&]<std::size_t kRows>(std::size_t first) {
      multiply_wide_tile<kKind, kRows>(panels, rows, first, out);
    });
  }

  // Codes of a byte each are read where they are packed.
  template <WeightKind kKind>
  static WidePanel widen_kind(const std::byte* panel, std::size_t n_blocks, std::byte* memory) {
    using Code = PackedCode<Lanes, kKind>;
    constexpr bool kIsWide = Code::kShape.code_bytes == kBlockQuads * kVectorBytes;
    const std::byte* const scales = panel + n_blocks * Code::kShape.code_bytes;
    auto* const wide_scales_begin =
        reinterpret_cast<float*>(memory + (kIsWide ? 0 : n_blocks * kBlockQuads * kVectorBytes));
    for (std::size_t part = 0; part < kParts; ++part) {
      for (std::size_t b = 0; b < n_blocks; b += Code::kBlocks) {
        const Code code(panel + b * Code::kShape.code_bytes, scales + b / Code::kBlocks * Code::kShape.scale_bytes,
                        part);
        for (std::size_t i = 0; i < Code::kBlocks; ++i) {
          CodeBlock<Lanes, kKind> w;
          code.read(i, w);
          if constexpr (!kIsWide) {
            std::byte* const codes = memory + (b + i) * kBlockQuads * kVectorBytes + part * Lanes::kLanes * kQuad;
            for (std::size_t q = 0; q < kBlockQuads; ++q)
              __builtin_memcpy(codes + q * kVectorBytes, &w.quads[q], sizeof w.quads[q]);
          }
          float* to = wide_scales_begin + (b + i) * wide_scales(kKind) + part * Lanes::kLanes;
          for (const Floats& scale : w.scales) {
            __builtin_memcpy(to, &scale, sizeof scale);
            to += kPanelRows;
          }
          if constexpr (code_traits(kKind).has_least) __builtin_memcpy(to, &w.least, sizeof w.least);
        }
      }
    }
    return {.codes = kIsWide ? panel : memory, .scales = wide_scales_begin};
  }

  static void round_row(const float* from, std::size_t n_blocks, RoundedBlock* to) {
    constexpr std::size_t kVectors = kBlockValues / Lanes::kLanes;
    constexpr float kMost = 127.0F;
    constexpr float kLeast = 1e-30F;  // blocks of less are nothing, lest what they are divided by be endless
    for (std::size_t b = 0; b < n_blocks; ++b, from += kBlockValues, ++to) {
      Floats x[kVectors];
      Floats most = {};
      Floats nothing = {};  // or no number, where one of them is none or endless
      for (std::size_t i = 0; i < kVectors; ++i) {
        x[i] = Lanes::load(from + i * Lanes::kLanes);
        const Floats size = x[i] < 0.0F ? -x[i] : x[i];
        most = size > most ? size : most;
        nothing += x[i] * 0.0F;
      }
      float largest = 0.0F;
      float unit = 0.0F;
      for (std::size_t i = 0; i < Lanes::kLanes; ++i) {
        largest = most[i] > largest ? most[i] : largest;
        unit += nothing[i];
      }
      to->scale = (largest > kLeast ? largest / kMost : 0.0F) + unit;
      const float per_step = unit == 0.0F && largest > kLeast ? kMost / largest : 0.0F;
      std::int32_t sums[2] = {};
      for (std::size_t i = 0; i < kVectors; ++i) {
        const Ints values = Lanes::nearest(unit == 0.0F ? x[i] * per_step : Floats{});
        Lanes::narrowed(values, to->values.data() + i * Lanes::kLanes);
        sums[i * Lanes::kLanes / (kBlockValues / 2)] += Lanes::sum(values);
      }
      to->minus_first_sum = -sums[0];
      to->minus_sum = -(sums[0] + sums[1]);
      to->minus_scaled_sum = to->scale * static_cast<float>(to->minus_sum);
    }
  }

  // One of the functions by kind, of those that are rounded.
  template <class Function, class Of>
  static constexpr auto by_kind(const Of& of) {
    constexpr auto kRounded = static_cast<std::size_t>(WeightKind::kF32);
    return by_kind<Function>(of, std::make_index_sequence<kRounded>{});
  }
  template <class Function, class Of, std::size_t... kKinds>
  static constexpr auto by_kind(const Of& of, std::index_sequence<kKinds...>) {
    return std::array<Function, sizeof...(kKinds)>{of.template operator()<static_cast<WeightKind>(kKinds)>()...};
  }

  static void multiply(WeightKind kind, const std::byte* panel, const RoundedRows& rows, const ProductOut& out) {
    static constexpr auto kAll = by_kind<void (*)(const std::byte*, const RoundedRows&, const ProductOut&)>(
        []<WeightKind kKind> { return multiply_kind<kKind>; });
    kAll[static_cast<std::size_t>(kind)](panel, rows, out);
  }
  static WidePanel widen(WeightKind kind, const std::byte* panel, std::size_t n_blocks, std::byte* memory) {
    static constexpr auto kAll = by_kind<WidePanel (*)(const std::byte*, std::size_t, std::byte*)>(
        []<WeightKind kKind> { return widen_kind<kKind>; });
    return kAll[static_cast<std::size_t>(kind)](panel, n_blocks, memory);
  }
  static void multiply_wide(WeightKind kind, const std::array<WidePanel, 2>& panels, const RoundedRows& rows,
                            const std::array<ProductOut, 2>& out) {
    static constexpr auto kAll =
        by_kind<void (*)(const std::array<WidePanel, 2>&, const RoundedRows&, const std::array<ProductOut, 2>&)>(
            []<WeightKind kKind> { return multiply_wide_kind<kKind>; });
    kAll[static_cast<std::size_t>(kind)](panels, rows, out);
  }

  static constexpr ProductKernels all() {
    return {.round_row = round_row,
            .multiply = multiply,
            .widen = widen,
            .multiply_wide = multiply_wide,
            .multiply_floats = FloatLoops<Lanes>::multiply,
            .widen_floats = FloatLoops<Lanes>::widen,
            .multiply_wide_floats = FloatLoops<Lanes>::multiply_wide};
  }
};

}  // namespace
}  // namespace ebb
