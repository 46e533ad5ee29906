#include <immintrin.h>

#include "bench/read_stream.h"

namespace ebb {

std::uint64_t read_stream_avx512(const std::byte* bytes, std::size_t n_bytes) {
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
  for (std::size_t left = n_bytes / kReadStep; left > 0; --left, bytes += kReadStep) {
    a = _mm512_add_epi64(a, _mm512_load_si512(bytes));
    b = _mm512_add_epi64(b, _mm512_load_si512(bytes + 64));
    c = _mm512_add_epi64(c, _mm512_load_si512(bytes + 128));
    d = _mm512_add_epi64(d, _mm512_load_si512(bytes + 192));
  }
  const __m512i sum = _mm512_add_epi64(_mm512_add_epi64(a, b), _mm512_add_epi64(c, d));
  return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(sum));
}

}  // namespace ebb
