#include "bench/read_stream_body.h"

namespace ebb {

std::uint64_t read_stream_avx2(const std::byte* bytes, std::size_t n_bytes, ReadPattern pattern) {
  return ReadLoops<32>::read(bytes, n_bytes, pattern);
}

}  // namespace ebb
