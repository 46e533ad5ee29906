// Bytes of frames that tests can tell, for tests only.
//
// Thread rule: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace ebb {

using Bytes = std::vector<std::byte>;

inline Bytes random_bytes(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace ebb
