#include "base/stream_copy.h"

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ebb {

void copy_past_cache(std::byte* to, std::span<const std::byte> from) {
#if defined(__SSE2__)
  constexpr std::size_t kLine = 64;
  if (reinterpret_cast<std::uintptr_t>(to) % sizeof(__m128i) == 0) {
    const std::size_t n_lines = from.size() / kLine;
    for (std::size_t line = 0; line < n_lines; ++line) {
      const auto* source = reinterpret_cast<const __m128i*>(from.data() + line * kLine);
      auto* target = reinterpret_cast<__m128i*>(to + line * kLine);
      for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, _mm_loadu_si128(source + i));
    }
    _mm_sfence();
    to += n_lines * kLine;
    from = from.subspan(n_lines * kLine);
  }
#endif
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace ebb
