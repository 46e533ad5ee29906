// Reads a range of memory once, as fast as one thread of this processor can, in one of several ways.
//
// Which way is the fastest differs by machine, so that whoever wants its limit tries all (bench/peak.h). The widest loads there are,
// chosen at run time: narrow ones keep fewer reads under way at once and then measure themselves instead of the memory.
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ebb {

// Bytes are read in steps of this size; a rest is left out.
inline constexpr std::size_t kReadStep = 256;

// Whether what comes next is asked for ahead of its load: into all caches, or as what nobody reads again.
enum class Prefetch : std::uint8_t { kNone, kKept, kPassing };

struct ReadPattern {
  // 1, 2, 4 or 8 parts of the range that are read side by side, each from its begin to its end.
  std::int32_t n_streams = 1;
  Prefetch prefetch = Prefetch::kNone;

  // "4 streams, prefetched"
  [[nodiscard]] std::string text() const;
  friend bool operator==(const ReadPattern&, const ReadPattern&) = default;
};

// A sum over the bytes, so that a compiler cannot leave the reading out. `bytes` lies on a cache line; n_streams * kReadStep divides
// n_bytes, or a rest is left out.
[[nodiscard]] std::uint64_t read_stream(const std::byte* bytes, std::size_t n_bytes, ReadPattern pattern = {});

[[nodiscard]] std::uint64_t read_stream_portable(const std::byte* bytes, std::size_t n_bytes, ReadPattern pattern);
// Only where the processor has AVX2; AVX-512F.
[[nodiscard]] std::uint64_t read_stream_avx2(const std::byte* bytes, std::size_t n_bytes, ReadPattern pattern);
[[nodiscard]] std::uint64_t read_stream_avx512(const std::byte* bytes, std::size_t n_bytes, ReadPattern pattern);

}  // namespace ebb
