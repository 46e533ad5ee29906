#include "bench/read_stream.h"

#include <array>
#include <cstring>

namespace ebb {

std::uint64_t read_stream_portable(const std::byte* bytes, std::size_t n_bytes) {
  // Several sums, so that no addition waits for the one before it.
  std::array<std::uint64_t, kReadStep / sizeof(std::uint64_t)> sums{};
  for (std::size_t left = n_bytes / kReadStep; left > 0; --left, bytes += kReadStep) {
    auto words = sums;
    std::memcpy(words.data(), bytes, kReadStep);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += words[i];
  }
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) total += sum;
  return total;
}

std::uint64_t read_stream(const std::byte* bytes, std::size_t n_bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return read_stream_avx512(bytes, n_bytes);
#endif
  return read_stream_portable(bytes, n_bytes);
}

}  // namespace ebb
