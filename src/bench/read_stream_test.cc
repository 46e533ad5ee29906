#include "bench/read_stream.h"

#include <array>

#include <gtest/gtest.h>

namespace ebb {
namespace {

// 12 steps and a rest that is left out.
struct alignas(64) Words {
  std::array<std::uint64_t, 12 * kReadStep / sizeof(std::uint64_t) + 3> values{};

  Words() {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i * i + 1;
  }
  [[nodiscard]] std::uint64_t sum_of_steps() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i + 3 < values.size(); ++i) sum += values[i];
    return sum;
  }
  [[nodiscard]] const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(values.data()); }
};

TEST(ReadStream, reads_every_byte_of_every_step_once) {
  const Words words;
  EXPECT_EQ(read_stream_portable(words.bytes(), sizeof words.values), words.sum_of_steps());
  EXPECT_EQ(read_stream(words.bytes(), sizeof words.values), words.sum_of_steps());
}

}  // namespace
}  // namespace ebb
