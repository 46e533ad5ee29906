// The loops of matrix/product_kernels.h for weights that are floats, for whatever instruction set the file that includes this is built for.
//
// Values are multiplied and added one by one, fused, within a block of them; then blocks are added up. Thread rule: pure functions of their
// arguments.
#pragma once

#include <cstddef>

#include "matrix/product_codes.h"
#include "matrix/product_kernels.h"
#include "matrix/row_tiles.h"

namespace ebb {
namespace {

template <class Lanes>
struct FloatLoops {
  using Floats = typename Lanes::Floats;
  static constexpr std::size_t kParts = kPanelRows / Lanes::kLanes;

  template <WeightKind kKind>
  [[gnu::always_inline]] static Floats read(const std::byte* panel, std::size_t at) {
    if constexpr (kKind == WeightKind::kF32) return Lanes::load(reinterpret_cast<const float*>(panel) + at);
    if constexpr (kKind == WeightKind::kF16) return Lanes::of_halves(panel + 2 * at);
    if constexpr (kKind == WeightKind::kBf16) return Lanes::of_upper_halves(panel + 2 * at);
  }

  template <WeightKind kKind, std::size_t kPanels, std::size_t kRows>
  static void multiply_tile(const std::array<const std::byte*, kPanels>& panels, const FloatRows& rows,
                            std::size_t first, const std::array<ProductOut, kPanels>& out) {
    const std::size_t n_in = rows.n_blocks * kBlockValues;
    const float* const x = rows.data + first * n_in;
    for (std::size_t part = 0; part < kParts; ++part) {
      Floats sums[kPanels][kRows] = {};
      for (std::size_t b = 0; b < n_in; b += kBlockValues) {
        Floats products[kPanels][kRows] = {};
        for (std::size_t i = b; i < b + kBlockValues; ++i) {
          Floats w[kPanels];
          for (std::size_t p = 0; p < kPanels; ++p)
            w[p] = read<kKind>(panels[p], i * kPanelRows + part * Lanes::kLanes);
#pragma GCC unroll 8
          for (std::size_t r = 0; r < kRows; ++r) {
            const Floats value = Lanes::repeated(x[r * n_in + i]);
            for (std::size_t p = 0; p < kPanels; ++p) products[p][r] = Lanes::fused(w[p], value, products[p][r]);
          }
        }
        for (std::size_t p = 0; p < kPanels; ++p) {
          for (std::size_t r = 0; r < kRows; ++r) sums[p][r] += products[p][r];
        }
      }
      for (std::size_t p = 0; p < kPanels; ++p) {
        for (std::size_t r = 0; r < kRows; ++r) {
          store_part<Lanes>(sums[p][r], part, out[p].data + (first + r) * out[p].stride, out[p].n);
        }
      }
    }
  }

  template <WeightKind kKind>
  static void multiply_of(const std::byte* panel, const FloatRows& rows, const ProductOut& out) {
    for_row_tiles<Lanes::kRowsTogether>(rows.n_rows, [&]<std::size_t kRows>(std::size_t first) {
      multiply_tile<kKind, 1, kRows>({panel}, rows, first, {out});
    });
  }

  static void multiply(WeightKind kind, const std::byte* panel, const FloatRows& rows, const ProductOut& out) {
    if (kind == WeightKind::kF32) return multiply_of<WeightKind::kF32>(panel, rows, out);
    if (kind == WeightKind::kF16) return multiply_of<WeightKind::kF16>(panel, rows, out);
    multiply_of<WeightKind::kBf16>(panel, rows, out);
  }

  static const float* widen(WeightKind kind, const std::byte* panel, std::size_t n_blocks, std::byte* memory) {
    if (kind == WeightKind::kF32) return reinterpret_cast<const float*>(panel);
    auto* const wide = reinterpret_cast<float*>(memory);
    for (std::size_t at = 0; at < n_blocks * kBlockValues * kPanelRows; at += Lanes::kLanes) {
      const Floats w =
          kind == WeightKind::kF16 ? read<WeightKind::kF16>(panel, at) : read<WeightKind::kBf16>(panel, at);
      __builtin_memcpy(wide + at, &w, sizeof w);
    }
    return wide;
  }

  static void multiply_wide(const std::array<const float*, 2>& panels, const FloatRows& rows,
                            const std::array<ProductOut, 2>& out) {
    const std::array<const std::byte*, 2> both = {reinterpret_cast<const std::byte*>(panels[0]),
                                                  reinterpret_cast<const std::byte*>(panels[1])};
    for_row_tiles<Lanes::kRowsTogether>(rows.n_rows, [&]<std::size_t kRows>(std::size_t first) {
      multiply_tile<WeightKind::kF32, 2, kRows>(both, rows, first, out);
    });
  }
};

}  // namespace
}  // namespace ebb
