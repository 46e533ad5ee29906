#include "bench/read_stream.h"

#include <array>

#include <gtest/gtest.h>

namespace ebb {
namespace {

// Steps for each stream of the most that there are, twice, and a rest that is left out.
struct alignas(64) Words {
  static constexpr std::size_t kSteps = 16 * kReadStep / sizeof(std::uint64_t);
  std::array<std::uint64_t, kSteps + 3> values{};

  Words() {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i * i + 1;
  }
  [[nodiscard]] std::uint64_t sum_of_steps() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kSteps; ++i) sum += values[i];
    return sum;
  }
  [[nodiscard]] const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(values.data()); }
};

TEST(ReadStream, reads_every_byte_of_every_step_once_in_each_way) {
  const Words words;
  for (const std::int32_t n_streams : {1, 2, 4, 8}) {
    for (const Prefetch prefetch : {Prefetch::kNone, Prefetch::kKept, Prefetch::kPassing}) {
      const ReadPattern pattern{.n_streams = n_streams, .prefetch = prefetch};
      EXPECT_EQ(read_stream_portable(words.bytes(), sizeof words.values, pattern), words.sum_of_steps())
          << pattern.text();
      EXPECT_EQ(read_stream(words.bytes(), sizeof words.values, pattern), words.sum_of_steps()) << pattern.text();
    }
  }
}

}  // namespace
}  // namespace ebb
