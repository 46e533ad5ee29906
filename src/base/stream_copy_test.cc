#include "base/stream_copy.h"

#include <vector>

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(StreamCopy, copies_exactly_its_bytes_at_any_size_and_alignment) {
  std::vector<std::byte> from(700);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 13 + 1);
  for (std::size_t n_bytes = 0; n_bytes <= 300; ++n_bytes) {
    for (const std::size_t shift : {0UL, 1UL, 16UL, 33UL}) {
      std::vector<std::byte> to(700, std::byte{0xee});
      const auto source = std::span<const std::byte>(from).subspan(shift * 3 % 50, n_bytes);
      copy_past_cache(to.data() + 64 + shift, source);
      for (std::size_t i = 0; i < to.size(); ++i) {
        const bool inside = i >= 64 + shift && i < 64 + shift + n_bytes;
        ASSERT_EQ(to[i], inside ? source[i - 64 - shift] : std::byte{0xee}) << n_bytes << " " << shift << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace ebb
