// Reads a range of memory once, as fast as one thread of this processor can.
//
// The widest loads there are, chosen at run time: narrow ones keep fewer reads under way at once and then measure
// themselves instead of the memory. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ebb {

// Bytes are read in steps of this size; a rest is left out.
inline constexpr std::size_t kReadStep = 256;

// A sum over the bytes, so that a compiler cannot leave the reading out. `bytes` lies on a cache line.
[[nodiscard]] std::uint64_t read_stream(const std::byte* bytes, std::size_t n_bytes);

[[nodiscard]] std::uint64_t read_stream_portable(const std::byte* bytes, std::size_t n_bytes);
// Only where the processor has AVX-512F.
[[nodiscard]] std::uint64_t read_stream_avx512(const std::byte* bytes, std::size_t n_bytes);

}  // namespace ebb
