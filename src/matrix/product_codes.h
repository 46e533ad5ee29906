// How a kind of weights is read from panels into registers, for the files that are built for an instruction set.
//
// Thread rule: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "matrix/product_kernels.h"

namespace ebb {
namespace {

// Of one block of a panel, the part of it that fills a register.
template <class Lanes, WeightKind kKind>
struct CodeBlock {
  typename Lanes::Bytes quads[kBlockQuads];
  typename Lanes::Floats scales[code_traits(kKind).n_scales];
  typename Lanes::Floats least;  // where there is one
};

// The values of IQ4's codes, above -128.
alignas(16) inline constexpr std::uint8_t kIq4Values[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                                            129, 141, 153, 166, 181, 197, 217, 241};

constexpr std::size_t kVectorBytes = kPanelRows * kQuad;

template <class Lanes, WeightKind kKind>
class PackedCode {
 public:
  static constexpr WeightShape kShape = weight_shape(kKind);
  static constexpr std::size_t kBlocks = kShape.unit_values / kBlockValues;
  using Bytes = typename Lanes::Bytes;
  using Floats = typename Lanes::Floats;

  // Of a unit; `part`: which of a panel's rows, Lanes::kLanes together.
  [[gnu::always_inline]] PackedCode(const std::byte* codes, const std::byte* scales, std::size_t part)
      : codes_(reinterpret_cast<const std::uint8_t*>(codes) + part * Lanes::kLanes * kQuad),
        scales_(reinterpret_cast<const std::uint8_t*>(scales) + kHeadBytes + part * Lanes::kLanes),
        d_(Lanes::of_halves(scales + part * Lanes::kLanes * 2)) {
    if constexpr (kHasLeast) dmin_ = Lanes::of_halves(scales + kPanelRows * 2 + part * Lanes::kLanes * 2);
  }

  [[gnu::always_inline]] void read(std::size_t b, CodeBlock<Lanes, kKind>& block) const {
    read_quads(codes_ + b * kShape.code_bytes, block.quads);
    read_scales(b, block);
  }

 private:
  static constexpr bool kHasLeast = code_traits(kKind).has_least;
  static constexpr std::size_t kHeadBytes = (kHasLeast ? 2 : 1) * kPanelRows * 2;

  [[gnu::always_inline]] static void read_quads(const std::uint8_t* codes, Bytes (&quads)[kBlockQuads]) {
    if constexpr (kKind == WeightKind::kQ8_0) {
      for (std::size_t q = 0; q < kBlockQuads; ++q) quads[q] = Lanes::load(codes + q * kVectorBytes);
    } else {
      for (std::size_t q = 0; q < 4; ++q) {
        const Bytes two = Lanes::load(codes + q * kVectorBytes);
        quads[q] = two & 15;
        quads[4 + q] = (two >> 4) & 15;
      }
    }
    if constexpr (kKind == WeightKind::kQ5K) {
      const Bytes fifth = Lanes::load(codes + 4 * kVectorBytes);
      for (std::size_t q = 0; q < 4; ++q) {
        quads[q] |= (fifth << (4 - q)) & 16;
        quads[4 + q] |= (fifth >> q) & 16;
      }
    }
    if constexpr (kKind == WeightKind::kQ6K) {
      for (std::size_t half = 0; half < 2; ++half) {
        const Bytes upper = Lanes::load(codes + (4 + half) * kVectorBytes);
        quads[4 * half] |= (upper << 4) & 48;
        quads[4 * half + 1] |= (upper << 2) & 48;
        quads[4 * half + 2] |= upper & 48;
        quads[4 * half + 3] |= (upper >> 2) & 48;
      }
    }
    if constexpr (kKind == WeightKind::kIq4Nl || kKind == WeightKind::kIq4Xs) {
      for (Bytes& quad : quads) quad = Lanes::looked_up(kIq4Values, quad);
    }
  }

  [[gnu::always_inline]] void read_scales(std::size_t b, CodeBlock<Lanes, kKind>& block) const {
    if constexpr (kKind == WeightKind::kQ6K) {
      for (std::size_t half = 0; half < 2; ++half)
        block.scales[half] = d_ * Lanes::of_signed(scales_ + (2 * b + half) * kPanelRows);
    } else if constexpr (kKind == WeightKind::kIq4Xs) {
      block.scales[0] = d_ * Lanes::of_signed(scales_ + b * kPanelRows);
    } else if constexpr (kHasLeast) {
      const auto low = Lanes::widened(scales_ + b * kPanelRows);
      const auto tops = Lanes::widened(scales_ + 8 * kPanelRows + b / 2 * kPanelRows) >> static_cast<int>(4 * (b % 2));
      block.scales[0] = d_ * Lanes::to_floats((low & 15) | ((tops & 3) << 4));
      block.least = dmin_ * Lanes::to_floats((low >> 4) | (((tops >> 2) & 3) << 4));
    } else {
      block.scales[0] = d_;
    }
  }

  const std::uint8_t* codes_;
  const std::uint8_t* scales_;  // behind d and dmin
  Floats d_;
  Floats dmin_ = {};
};

}  // namespace
}  // namespace ebb
