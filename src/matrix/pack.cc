#include "matrix/pack.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace ebb {
namespace {

constexpr std::size_t kMostValues = 256;
constexpr std::size_t kHalfBytes = 2;
constexpr std::size_t kScaleRow = kPanelRows * kHalfBytes;

// One row's unit as the file has it, codes apart.
struct Unit {
  std::array<std::uint8_t, kMostValues> codes = {};
  // Bits of f16.
  std::uint16_t d = 0;
  std::uint16_t dmin = 0;
  std::array<std::uint8_t, kMostValues / 16> scales = {};
  std::array<std::uint8_t, kMostValues / kBlockValues> leasts = {};
};

std::uint16_t half_at(const std::uint8_t* p) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}

// n bytes of two codes: the low halves are those of the first n, the high ones those of the next.
void split_halves(const std::uint8_t* bytes, std::size_t n, std::uint8_t* codes) {
  for (std::size_t i = 0; i < n; ++i) {
    codes[i] = bytes[i] & 15U;
    codes[n + i] = bytes[i] >> 4U;
  }
}

// Eight scales and eight leasts of 6 bits in 12 bytes: of the first four the low 6 bits of bytes 0 to 3 and 4 to 7, whose top 2 bits belong to
// the last four, as do the halves of bytes 8 to 11.
void read_scales(const std::uint8_t* b, Unit& unit) {
  for (std::size_t i = 0; i < 4; ++i) {
    unit.scales[i] = b[i] & 63U;
    unit.leasts[i] = b[i + 4] & 63U;
    unit.scales[i + 4] = static_cast<std::uint8_t>((b[i + 8] & 15U) | ((b[i] >> 6U) << 4U));
    unit.leasts[i + 4] = static_cast<std::uint8_t>((b[i + 8] >> 4U) | ((b[i + 4] >> 6U) << 4U));
  }
}

void read_k(const std::uint8_t* file, bool has_fifth_bits, Unit& unit) {
  unit.d = half_at(file);
  unit.dmin = half_at(file + 2);
  read_scales(file + 4, unit);
  const std::uint8_t* const fifth = file + 16;
  const std::uint8_t* const halves = fifth + (has_fifth_bits ? 32 : 0);
  for (std::size_t pair = 0; pair < 4; ++pair) split_halves(halves + 32 * pair, 32, unit.codes.data() + 64 * pair);
  if (!has_fifth_bits) return;
  for (std::size_t i = 0; i < kMostValues; ++i) {
    unit.codes[i] |= static_cast<std::uint8_t>(((fifth[i % 32] >> (i / 32)) & 1U) << 4U);
  }
}

void read_q6_k(const std::uint8_t* file, Unit& unit) {
  const std::uint8_t* const upper = file + 128;
  for (std::size_t i = 0; i < kMostValues; ++i) {
    const std::size_t half = i / 128;
    const std::size_t quarter = i % 128 / 32;
    const std::size_t at = i % 32;
    const std::uint8_t low = file[64 * half + 32 * (quarter % 2) + at];
    const unsigned top = (upper[32 * half + at] >> (2 * quarter)) & 3U;
    unit.codes[i] = static_cast<std::uint8_t>((quarter < 2 ? low & 15U : low >> 4U) | (top << 4U));
  }
  std::memcpy(unit.scales.data(), file + 192, 16);
  unit.d = half_at(file + 208);
}

void read_iq4_xs(const std::uint8_t* file, Unit& unit) {
  unit.d = half_at(file);
  const unsigned upper = half_at(file + 2);
  for (std::size_t i = 0; i < 8; ++i) {
    const unsigned low = (file[4 + i / 2] >> (4 * (i % 2))) & 15U;
    unit.scales[i] = static_cast<std::uint8_t>((low | (((upper >> (2 * i)) & 3U) << 4U)) - 32U);
    split_halves(file + 8 + 16 * i, 16, unit.codes.data() + 32 * i);
  }
}

void read_unit(WeightKind kind, const std::uint8_t* file, Unit& unit) {
  switch (kind) {
    case WeightKind::kQ8_0:
      unit.d = half_at(file);
      for (std::size_t i = 0; i < kBlockValues; ++i) unit.codes[i] = file[2 + i] ^ 128U;
      return;
    case WeightKind::kQ4_0:
    case WeightKind::kIq4Nl: unit.d = half_at(file); return split_halves(file + 2, 16, unit.codes.data());
    case WeightKind::kQ4K: return read_k(file, false, unit);
    case WeightKind::kQ5K: return read_k(file, true, unit);
    case WeightKind::kQ6K: return read_q6_k(file, unit);
    case WeightKind::kIq4Xs: return read_iq4_xs(file, unit);
    case WeightKind::kF32:
    case WeightKind::kF16:
    case WeightKind::kBf16: return;
  }
}

// The codes of a block, of one row of the panel.
void put_codes(std::size_t code_bytes, const std::uint8_t* codes, std::size_t row, std::uint8_t* block) {
  constexpr std::size_t kVector = kPanelRows * kQuad;
  for (std::size_t i = 0; i < kBlockValues; ++i) {
    const std::size_t quad = i / kQuad;
    const std::size_t lane = row * kQuad + i % kQuad;
    if (code_bytes == kBlockQuads * kVector) {
      block[quad * kVector + lane] = codes[i];
      continue;
    }
    block[quad % 4 * kVector + lane] |= static_cast<std::uint8_t>((codes[i] & 15U) << (quad / 4 * 4));
    std::uint8_t* const upper = block + 4 * kVector;
    const unsigned top = codes[i] >> 4U;
    if (code_bytes == 5 * kVector) upper[lane] |= static_cast<std::uint8_t>(top << quad);
    if (code_bytes == 6 * kVector)
      upper[quad / 4 * kVector + lane] |= static_cast<std::uint8_t>(top << (2 * (quad % 4)));
  }
}

void put_half(std::uint16_t bits, std::size_t row, std::uint8_t* scales) {
  std::memcpy(scales + row * kHalfBytes, &bits, sizeof bits);
}

void put_scales(WeightKind kind, const Unit& unit, std::size_t row, std::uint8_t* scales) {
  put_half(unit.d, row, scales);
  std::uint8_t* behind = scales + kScaleRow;
  switch (kind) {
    case WeightKind::kQ8_0:
    case WeightKind::kQ4_0:
    case WeightKind::kIq4Nl:
    case WeightKind::kF32:
    case WeightKind::kF16:
    case WeightKind::kBf16: return;
    case WeightKind::kQ6K:
      for (std::size_t i = 0; i < 16; ++i) behind[i * kPanelRows + row] = unit.scales[i];
      return;
    case WeightKind::kIq4Xs:
      for (std::size_t i = 0; i < 8; ++i) behind[i * kPanelRows + row] = unit.scales[i];
      return;
    case WeightKind::kQ4K:
    case WeightKind::kQ5K: break;
  }
  put_half(unit.dmin, row, behind);
  behind += kScaleRow;
  std::uint8_t* const upper = behind + 8 * kPanelRows;
  for (std::size_t i = 0; i < 8; ++i) {
    behind[i * kPanelRows + row] = static_cast<std::uint8_t>((unit.scales[i] & 15U) | ((unit.leasts[i] & 15U) << 4U));
    const unsigned tops = (unit.scales[i] >> 4U) | ((unit.leasts[i] >> 4U) << 2U);
    upper[i / 2 * kPanelRows + row] |= static_cast<std::uint8_t>(tops << (4 * (i % 2)));
  }
}

void put_floats(std::span<const std::byte> file, std::size_t n_rows, std::size_t n_in, std::byte* panel) {
  const std::size_t n_bytes = file.size() / (n_rows * n_in);
  const std::byte* from = file.data();
  for (std::size_t row = 0; row < n_rows; ++row) {
    std::byte* to = panel + row * n_bytes;
    for (std::size_t i = 0; i < n_in; ++i, from += n_bytes, to += kPanelRows * n_bytes) std::memcpy(to, from, n_bytes);
  }
}

}  // namespace

void pack_panel(WeightKind kind, std::span<const std::byte> file, std::size_t n_rows, std::size_t n_in,
                std::byte* panel) {
  const WeightShape shape = weight_shape(kind);
  const std::size_t n_units = n_in / shape.unit_values;
  const std::size_t n_blocks = shape.unit_values / kBlockValues;
  EBB_CHECK(n_in % shape.unit_values == 0 && n_rows <= kPanelRows && file.size() == n_rows * n_units * shape.file_bytes,
            "{} rows of {} values in {} bytes", n_rows, n_in, file.size());
  const auto* from = reinterpret_cast<const std::uint8_t*>(file.data());
  auto* const codes = reinterpret_cast<std::uint8_t*>(panel);
  std::uint8_t* const scales = codes + panel_code_bytes(kind, n_in);
  std::memset(panel, 0, panel_bytes(kind, n_in));
  if (is_float(kind)) return put_floats(file, n_rows, n_in, panel);
  for (std::size_t row = 0; row < n_rows; ++row) {
    for (std::size_t u = 0; u < n_units; ++u, from += shape.file_bytes) {
      Unit unit;
      read_unit(kind, from, unit);
      for (std::size_t b = 0; b < n_blocks; ++b) {
        put_codes(shape.code_bytes, unit.codes.data() + b * kBlockValues, row,
                  codes + (u * n_blocks + b) * shape.code_bytes);
      }
      put_scales(kind, unit, row, scales + u * shape.scale_bytes);
    }
  }
}

}  // namespace ebb
