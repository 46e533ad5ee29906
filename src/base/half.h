// IEEE's binary16 in plain C++. For files that are built for no instruction set of their own.
#pragma once

#include <bit>
#include <cstdint>

namespace ebb {

[[nodiscard]] inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t magnitude = half & 0x7FFFU;
  if (magnitude > 0x7C00U) return std::bit_cast<float>(sign | 0x7FC00000U | (magnitude << 13));  // a quiet NaN
  if (magnitude == 0x7C00U) return std::bit_cast<float>(sign | 0x7F800000U);
  if (magnitude >= 0x0400U) return std::bit_cast<float>(sign | ((magnitude << 13) + (112U << 23)));
  const float value = static_cast<float>(magnitude) * 0x1p-24F;  // subnormal: exact
  return sign != 0 ? -value : value;
}

}  // namespace ebb
