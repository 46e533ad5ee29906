// The loops of bench/read_stream.h, for whatever instruction set the file that includes this is built for: kVectorBytes is what one
// of its registers holds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/read_stream.h"

namespace ebb {
namespace {

template <std::size_t kVectorBytes>
struct ReadLoops {
  using Words [[gnu::vector_size(kVectorBytes)]] = std::uint64_t;
  static constexpr std::size_t kLine = 64;
  // Nearer: the line comes too late. Farther: it has left the first cache again.
  static constexpr std::size_t kAhead = 2048;

  static Words load(const std::byte* p) {
    Words x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }

  // Four sums, so that no addition waits for the one before it.
  struct Sums {
    Words a{}, b{}, c{}, d{};

    void add_step(const std::byte* bytes) {
      for (std::size_t at = 0; at < kReadStep; at += 4 * kVectorBytes) {
        a += load(bytes + at);
        b += load(bytes + at + kVectorBytes);
        c += load(bytes + at + 2 * kVectorBytes);
        d += load(bytes + at + 3 * kVectorBytes);
      }
    }
    [[nodiscard]] std::uint64_t total() const {
      const Words all = a + b + c + d;
      std::uint64_t words[kVectorBytes / sizeof(std::uint64_t)];
      __builtin_memcpy(words, &all, sizeof words);
      std::uint64_t sum = 0;
      for (const std::uint64_t word : words) sum += word;
      return sum;
    }
  };

  template <std::size_t kStreams, Prefetch kPrefetch>
  static std::uint64_t read(const std::byte* bytes, std::size_t n_bytes) {
    const std::size_t n_stream_bytes = n_bytes / kStreams / kReadStep * kReadStep;
    Sums sums;
    for (std::size_t at = 0; at < n_stream_bytes; at += kReadStep) {
      for (std::size_t stream = 0; stream < kStreams; ++stream) {
        const std::byte* const step = bytes + stream * n_stream_bytes + at;
        for (std::size_t line = 0; line < kReadStep; line += kLine) {
          if constexpr (kPrefetch == Prefetch::kKept) __builtin_prefetch(step + kAhead + line, 0, 3);
          if constexpr (kPrefetch == Prefetch::kPassing) __builtin_prefetch(step + kAhead + line, 0, 0);
        }
        sums.add_step(step);
      }
    }
    return sums.total();
  }

  template <std::size_t kStreams>
  static std::uint64_t read_streams(const std::byte* bytes, std::size_t n_bytes, Prefetch prefetch) {
    switch (prefetch) {
      case Prefetch::kKept: return read<kStreams, Prefetch::kKept>(bytes, n_bytes);
      case Prefetch::kPassing: return read<kStreams, Prefetch::kPassing>(bytes, n_bytes);
      case Prefetch::kNone: break;
    }
    return read<kStreams, Prefetch::kNone>(bytes, n_bytes);
  }

  static std::uint64_t read(const std::byte* bytes, std::size_t n_bytes, ReadPattern pattern) {
    switch (pattern.n_streams) {
      case 2: return read_streams<2>(bytes, n_bytes, pattern.prefetch);
      case 4: return read_streams<4>(bytes, n_bytes, pattern.prefetch);
      case 8: return read_streams<8>(bytes, n_bytes, pattern.prefetch);
      default: return read_streams<1>(bytes, n_bytes, pattern.prefetch);
    }
  }
};

}  // namespace
}  // namespace ebb
