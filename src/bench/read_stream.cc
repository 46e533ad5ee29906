#include "bench/read_stream.h"

#include <fmt/format.h>

#include "bench/read_stream_body.h"

namespace ebb {

std::string ReadPattern::text() const {
  const std::string streams = n_streams == 1 ? "one stream" : fmt::format("{} streams", n_streams);
  switch (prefetch) {
    case Prefetch::kKept: return streams + ", prefetched";
    case Prefetch::kPassing: return streams + ", prefetched past the caches";
    case Prefetch::kNone: break;
  }
  return streams;
}

std::uint64_t read_stream_portable(const std::byte* bytes, std::size_t n_bytes, ReadPattern pattern) {
  return ReadLoops<16>::read(bytes, n_bytes, pattern);
}

std::uint64_t read_stream(const std::byte* bytes, std::size_t n_bytes, ReadPattern pattern) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return read_stream_avx512(bytes, n_bytes, pattern);
  if (__builtin_cpu_supports("avx2")) return read_stream_avx2(bytes, n_bytes, pattern);
#endif
  return read_stream_portable(bytes, n_bytes, pattern);
}

}  // namespace ebb
