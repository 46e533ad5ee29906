// Our counts are 32-bit and signed, memory's are not.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ebb {

// `n` must not be negative.
constexpr std::size_t to_size(std::int32_t n) { return static_cast<std::size_t>(n); }

}  // namespace ebb
