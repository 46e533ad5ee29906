#include "base/hash.h"

#include <array>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ebb {
namespace {

Hash128 hash_text(std::string_view text) { return hash_bytes(std::as_bytes(std::span(text))); }

// Names and checksums on disk depend on these: another library or version must not change them.
TEST(Hash, is_xxh3_with128_bits_and_seed_zero) {
  EXPECT_EQ(hash_text("").hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash_text("a").hex(), "a96faf705af16834e6c632b61e964e1f");
  EXPECT_EQ(hash_text("abc").hex(), "06b05ab6733a618578af5f94892f3950");
}

TEST(Hash, hex_has_the_high_half_first_and_all_digits) {
  EXPECT_EQ((Hash128{.low = 0x1, .high = 0xab}).hex(), "00000000000000ab0000000000000001");
}

TEST(Hasher, of_nothing_is_the_hash_of_nothing) { EXPECT_EQ(Hasher().finish(), hash_text("")); }

TEST(Hasher, takes_fixed_values_by_their_little_endian_bytes) {
  const std::array<unsigned char, 8> bytes = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
  EXPECT_EQ(Hasher().add(0x1122334455667788U).finish(), hash_bytes(std::as_bytes(std::span(bytes))));
  EXPECT_EQ(Hasher().add(Hash128{.low = 1, .high = 2}).finish(), Hasher().add(1).add(2).finish());
}

TEST(Hasher, tells_apart_the_same_bytes_cut_elsewhere) {
  EXPECT_NE(Hasher().add_text("ab").add_text("c").finish(), Hasher().add_text("a").add_text("bc").finish());
  EXPECT_NE(Hasher().add_text("").add_text("a").finish(), Hasher().add_text("a").add_text("").finish());
}

TEST(Hasher, streams_long_inputs_like_one_piece) {
  std::string whole(8, '\0');
  const std::string text(10000, 'x');
  whole[0] = static_cast<char>(text.size() & 0xff);
  whole[1] = static_cast<char>(text.size() >> 8);
  whole += text;
  EXPECT_EQ(Hasher().add_text(text).finish(), hash_text(whole));
}

TEST(Hasher, hashes_raw_bytes_alike_however_they_are_cut) {
  std::array<std::byte, 3000> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  const Hash128 whole = hash_bytes(bytes);
  for (const std::size_t cut : {0UL, 1UL, 64UL, 255UL, 256UL, 1024UL, 2999UL, 3000UL}) {
    const std::span<const std::byte> all(bytes);
    EXPECT_EQ(Hasher().add_raw_bytes(all.first(cut)).add_raw_bytes(all.subspan(cut)).finish(), whole) << cut;
  }
}

TEST(Hasher, may_go_on_after_finish) {
  Hasher hasher;
  hasher.add(1);
  const Hash128 first = hasher.finish();
  EXPECT_EQ(hasher.finish(), first);
  EXPECT_EQ(hasher.add(2).finish(), Hasher().add(1).add(2).finish());
}

TEST(Hash, changes_with_every_bit) {
  std::array<std::byte, 40> bytes{};
  std::set<Hash128> seen = {hash_bytes(bytes)};
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_TRUE(seen.insert(hash_bytes(bytes)).second) << "bit " << bit;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

}  // namespace
}  // namespace ebb
