#include <gtest/gtest.h>

#include "store/ram_tier.h"

namespace ebb {
namespace {

Record make_record(std::uint64_t name, std::size_t n_bytes = 256) {
  Record record = {
      .key = {.model = {1, 2}, .layout = {3, 4}, .name = {name, 5}}, .begin = Position(128), .n_frames = 2};
  record.tokens = {Token(7), Token(8), Token(9)};
  for (std::size_t i = 0; i < n_bytes; ++i) record.frames.push_back(static_cast<std::byte>(i * 31 + name));
  return record;
}

TEST(Record, comes_back_as_it_was) {
  const Record record = make_record(1);
  const Result<Record> back = decode(encode(record));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->key, record.key);
  EXPECT_EQ(back->begin, record.begin);
  EXPECT_EQ(back->tokens, record.tokens);
  EXPECT_EQ(back->n_frames, record.n_frames);
  EXPECT_EQ(back->frames, record.frames);
}

TEST(Record, any_flipped_bit_is_refused) {
  const std::vector<std::byte> bytes = encode(make_record(1));
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    std::vector<std::byte> flipped = bytes;
    flipped[i / 8] ^= static_cast<std::byte>(1U << (i % 8));
    EXPECT_FALSE(decode(flipped).ok()) << "bit " << i;
  }
}

TEST(Record, any_truncation_or_extension_is_refused) {
  const std::vector<std::byte> bytes = encode(make_record(1));
  for (std::size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(decode(std::span(bytes).first(n)).ok()) << n;
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode(longer).ok());
}

TEST(RamTier, drops_the_least_recently_used_under_its_cap) {
  const std::size_t one = encode(make_record(1)).size();
  RamTier tier(2 * one);
  ASSERT_TRUE(tier.put(make_record(1)).ok());
  ASSERT_TRUE(tier.put(make_record(2)).ok());
  ASSERT_TRUE(tier.get(make_record(1).key).ok());
  ASSERT_TRUE(tier.put(make_record(3)).ok());
  EXPECT_TRUE(tier.contains(make_record(1).key.name));
  EXPECT_FALSE(tier.contains(make_record(2).key.name));
  EXPECT_EQ(tier.stats().n_dropped, 1);
  tier.check_invariants();
}

TEST(RamTier, refuses_a_record_larger_than_itself_and_keeps_the_rest) {
  RamTier tier(encode(make_record(1)).size());
  ASSERT_TRUE(tier.put(make_record(1)).ok());
  EXPECT_EQ(tier.put(make_record(2, 4096)).code(), Code::kOutOfBudget);
  EXPECT_TRUE(tier.get(make_record(1).key).ok());
}

TEST(RamTier, a_damaged_record_is_a_counted_refusal_and_then_a_miss) {
  RamTier tier(1 << 20);
  ASSERT_TRUE(tier.put(make_record(1)).ok());
  tier.damage(make_record(1).key.name, [](std::vector<std::byte>& bytes) { bytes.back() ^= std::byte{1}; });
  EXPECT_EQ(tier.get(make_record(1).key).status().code(), Code::kDamaged);
  EXPECT_EQ(tier.get(make_record(1).key).status().code(), Code::kNotFound);
  EXPECT_EQ(tier.stats().n_refused, 1);
  EXPECT_EQ(tier.stats().n_misses, 1);
}

TEST(RamTier, another_models_record_is_refused) {
  RamTier tier(1 << 20);
  ASSERT_TRUE(tier.put(make_record(1)).ok());
  RecordKey foreign = make_record(1).key;
  foreign.model = {9, 9};
  EXPECT_EQ(tier.get(foreign).status().code(), Code::kDamaged);
}

}  // namespace
}  // namespace ebb
