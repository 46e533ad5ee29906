#include "session/image.h"

#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "base/byte_io.h"

namespace ebb {
namespace {

constexpr std::size_t kVersionAt = 8;
// Behind magic, version, four counts, turns, next anchor and epoch.
constexpr std::size_t kCountersAt = 8 + 4 + 4 * 4 + 4 + 4 + 8;
constexpr std::size_t kCounterBytes = 9 * 8;

SessionImage counted() {
  return {.tokens = {Token(1), Token(2)},
          .n_turns = 3,
          .stats = {.n_evicted_blocks = 28, .n_saved_blocks = 27, .n_recalled_blocks = 7, .n_rebases = 1}};
}

std::vector<std::byte> with_checksum(std::span<const std::byte> body) {
  ByteWriter out;
  out.put_bytes(body);
  out.put(hash_bytes(body));
  return std::move(out.bytes());
}

// What `encode_image` gave, with another version and without its checksum.
std::vector<std::byte> body_of_version(std::uint32_t version) {
  std::vector<std::byte> bytes = encode_image(counted());
  bytes.erase(bytes.end() - sizeof(Hash128), bytes.end());
  std::memcpy(bytes.data() + kVersionAt, &version, sizeof version);
  return bytes;
}

TEST(SessionImages, CarryTheSessionsCounters) {
  const Result<SessionImage> image = decode_image(encode_image(counted()));
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(image->stats.n_evicted_blocks, 28);
  EXPECT_EQ(image->stats.n_saved_blocks, 27);
  EXPECT_EQ(image->stats.n_recalled_blocks, 7);
  EXPECT_EQ(image->stats.n_rebases, 1);
  EXPECT_EQ(image->tokens, counted().tokens);
}

TEST(SessionImages, OfTheVersionBeforeGoOnWithoutCounters) {
  std::vector<std::byte> body = body_of_version(1);
  body.erase(body.begin() + kCountersAt, body.begin() + kCountersAt + kCounterBytes);
  const Result<SessionImage> image = decode_image(with_checksum(body));
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(image->tokens, counted().tokens);
  EXPECT_EQ(image->n_turns, 3);
  EXPECT_EQ(image->stats.n_evicted_blocks, 0);
}

TEST(SessionImages, OfAnotherVersionAreRefusedWithThoseThatAreRead) {
  for (const std::uint32_t version : {0U, 3U}) {
    const Result<SessionImage> image = decode_image(with_checksum(body_of_version(version)));
    EXPECT_EQ(image.status().code(), Code::kDamaged);
    EXPECT_NE(image.status().message().find("reads 1 to 2"), std::string::npos) << image.status().message();
  }
}

TEST(SessionImages, CountersThatNoSessionReachesAreCutSoThatCountingGoesOn) {
  SessionImage image = counted();
  image.stats.n_evicted_blocks = std::numeric_limits<std::int64_t>::max();
  image.stats.n_saved_blocks = -5;
  const Result<SessionImage> read = decode_image(encode_image(image));
  ASSERT_TRUE(read.ok());
  EXPECT_LT(read->stats.n_evicted_blocks, std::numeric_limits<std::int64_t>::max() / 2);
  EXPECT_EQ(read->stats.n_saved_blocks, 0);
}

}  // namespace
}  // namespace ebb
