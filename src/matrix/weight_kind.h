// WeightKind: a type of weights whose products are computed here, and what of it products need to know.
//
//   weight = scale * (code - offset) - least          of 32 neighbours of a row (16 for Q6_K) one scale and one least
//   weight = a float of 32 or 16 bits                 multiplied with rows that are not rounded
//
// It does not know files, models or ggml. Thread rule: values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ebb {

enum class WeightKind : std::uint8_t { kQ8_0, kQ4_0, kIq4Nl, kQ4K, kQ5K, kQ6K, kIq4Xs, kF32, kF16, kBf16 };
inline constexpr std::size_t kNumWeightKinds = 10;
[[nodiscard]] constexpr bool is_float(WeightKind kind) { return kind >= WeightKind::kF32; }

// Values of a row that share a scale of what they are multiplied with (matrix/rounded_rows.h), and the least that is multiplied at once.
inline constexpr std::size_t kBlockValues = 32;
// Rows of a matrix that lie interleaved, so that a vector holds one number of each.
inline constexpr std::size_t kPanelRows = 16;
// Of a row, values whose products are added up in one lane at once.
inline constexpr std::size_t kQuad = 4;
inline constexpr std::size_t kBlockQuads = kBlockValues / kQuad;

struct WeightShape {
  // Values of a row that are packed as one unit, in files and in panels: 32 or 256.
  std::size_t unit_values = 0;
  // A unit of one row in a file.
  std::size_t file_bytes = 0;
  // Of a panel: codes of a block, and what says their scales of a unit. Both are multiples of 32.
  std::size_t code_bytes = 0;
  std::size_t scale_bytes = 0;
};

[[nodiscard]] constexpr WeightShape weight_shape(WeightKind kind) {
  switch (kind) {
    case WeightKind::kQ8_0: return {.unit_values = 32, .file_bytes = 34, .code_bytes = 512, .scale_bytes = 32};
    case WeightKind::kQ4_0:
    case WeightKind::kIq4Nl: return {.unit_values = 32, .file_bytes = 18, .code_bytes = 256, .scale_bytes = 32};
    case WeightKind::kQ4K: return {.unit_values = 256, .file_bytes = 144, .code_bytes = 256, .scale_bytes = 256};
    case WeightKind::kQ5K: return {.unit_values = 256, .file_bytes = 176, .code_bytes = 320, .scale_bytes = 256};
    case WeightKind::kQ6K: return {.unit_values = 256, .file_bytes = 210, .code_bytes = 384, .scale_bytes = 288};
    case WeightKind::kIq4Xs: return {.unit_values = 256, .file_bytes = 136, .code_bytes = 256, .scale_bytes = 160};
    case WeightKind::kF32: return {.unit_values = 32, .file_bytes = 128, .code_bytes = 2048};
    case WeightKind::kF16:
    case WeightKind::kBf16: return {.unit_values = 32, .file_bytes = 64, .code_bytes = 1024};
  }
  return {};
}

// How codes become weights.
struct CodeTraits {
  std::size_t n_scales = 1;  // of a block
  bool has_least = false;
  std::int32_t offset = 0;  // a power of two, or 0
};

[[nodiscard]] constexpr CodeTraits code_traits(WeightKind kind) {
  switch (kind) {
    case WeightKind::kQ8_0:
    case WeightKind::kIq4Nl:
    case WeightKind::kIq4Xs: return {.offset = 128};
    case WeightKind::kQ4_0: return {.offset = 8};
    case WeightKind::kQ4K:
    case WeightKind::kQ5K: return {.has_least = true};
    case WeightKind::kQ6K: return {.n_scales = 2, .offset = 32};
    case WeightKind::kF32:
    case WeightKind::kF16:
    case WeightKind::kBf16: break;
  }
  return {};
}

// A panel of rows of n_in values: the codes of all blocks, then the scales of all units.
[[nodiscard]] constexpr std::size_t panel_code_bytes(WeightKind kind, std::size_t n_in) {
  return n_in / kBlockValues * weight_shape(kind).code_bytes;
}
[[nodiscard]] constexpr std::size_t panel_bytes(WeightKind kind, std::size_t n_in) {
  const std::size_t n =
      panel_code_bytes(kind, n_in) + n_in / weight_shape(kind).unit_values * weight_shape(kind).scale_bytes;
  constexpr std::size_t kLine = 64;
  return (n + kLine - 1) / kLine * kLine;
}

// Scales and leasts of a block of a panel, as floats.
[[nodiscard]] constexpr std::size_t wide_scales(WeightKind kind) {
  return (code_traits(kind).n_scales + (code_traits(kind).has_least ? 1 : 0)) * kPanelRows;
}
[[nodiscard]] constexpr std::size_t wide_panel_bytes(WeightKind kind, std::size_t n_in) {
  if (is_float(kind)) return kind == WeightKind::kF32 ? 0 : n_in * kPanelRows * sizeof(float);
  return n_in / kBlockValues * (kBlockValues * kPanelRows + wide_scales(kind) * sizeof(float));
}

}  // namespace ebb
