#include "store/memory_tier.h"

#include <gtest/gtest.h>

#include "store/toy_record.h"

namespace ebb {
namespace {

const std::size_t kOne = make_toy_record({})->bytes().size();

TEST(MemoryTier, drops_the_least_recently_used_under_its_cap) {
  MemoryTier tier(2 * kOne);
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1}), false).ok());
  ASSERT_TRUE(tier.put(make_toy_record({.number = 2}), false).ok());
  ASSERT_TRUE(tier.get(toy_key(1)).ok());
  ASSERT_TRUE(tier.put(make_toy_record({.number = 3}), false).ok());
  EXPECT_TRUE(tier.contains(toy_key(1).name));
  EXPECT_FALSE(tier.contains(toy_key(2).name));
  EXPECT_EQ(tier.stats().n_dropped, 1);
  EXPECT_EQ(tier.stats().bytes, 2 * kOne);
  tier.check_invariants();
}

TEST(MemoryTier, drops_what_lies_on_disk_before_what_lies_only_here) {
  MemoryTier tier(2 * kOne);
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1}), false).ok());
  ASSERT_TRUE(tier.put(make_toy_record({.number = 2}), true).ok());
  ASSERT_TRUE(tier.put(make_toy_record({.number = 3}), false).ok());
  EXPECT_TRUE(tier.contains(toy_key(1).name));
  EXPECT_FALSE(tier.contains(toy_key(2).name));
  // Once it has been written, it is the cheaper one.
  tier.set_on_disk(toy_key(3).name, true);
  ASSERT_TRUE(tier.put(make_toy_record({.number = 4}), false).ok());
  EXPECT_TRUE(tier.contains(toy_key(1).name));
  EXPECT_FALSE(tier.contains(toy_key(3).name));
  tier.check_invariants();
}

TEST(MemoryTier, lets_go_of_what_nobody_asks_for_even_if_it_lies_only_here) {
  MemoryTier tier(4 * kOne);
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1}), false).ok());
  for (std::uint64_t n = 2; n < 100; ++n) ASSERT_TRUE(tier.put(make_toy_record({.number = n}), true).ok());
  EXPECT_FALSE(tier.contains(toy_key(1).name));
  tier.check_invariants();
}

TEST(MemoryTier, refuses_a_record_larger_than_itself_and_keeps_the_rest) {
  MemoryTier tier(kOne);
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1}), false).ok());
  EXPECT_EQ(tier.put(make_toy_record({.number = 2, .n_frames = 20}), false).code(), Code::kOutOfBudget);
  EXPECT_TRUE(tier.get(toy_key(1)).ok());
}

TEST(MemoryTier, a_foreign_record_is_a_counted_refusal_and_then_a_miss) {
  MemoryTier tier(1 << 20);
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1}), false).ok());
  RecordKey foreign = toy_key(1);
  foreign.model = {9, 9};
  EXPECT_EQ(tier.get(foreign).status().code(), Code::kDamaged);
  EXPECT_EQ(tier.get(toy_key(1)).status().code(), Code::kNotFound);
  EXPECT_EQ(tier.stats().n_refused, 1);
  EXPECT_EQ(tier.stats().n_misses, 1);
  EXPECT_FALSE(tier.stats().last_error.empty());
  tier.check_invariants();
}

TEST(MemoryTier, refuses_the_very_record_that_was_read_and_not_its_successor) {
  MemoryTier tier(1 << 20);
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1}), false).ok());
  const RecordHandle read = *tier.get(toy_key(1));
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1}), false).ok());
  tier.refuse(read);
  EXPECT_TRUE(tier.contains(toy_key(1).name));
  tier.refuse(*tier.get(toy_key(1)));
  EXPECT_FALSE(tier.contains(toy_key(1).name));
  EXPECT_EQ(tier.stats().n_refused, 1);
}

TEST(MemoryTier, finds_records_by_content_as_long_as_it_has_them) {
  MemoryTier tier(1 << 20);
  EXPECT_EQ(tier.find_content(Hash128{1, 6}), std::nullopt);
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1}), false).ok());
  ASSERT_TRUE(tier.put(make_toy_record({.number = 2}), false).ok());
  EXPECT_EQ(tier.find_content(Hash128{1, 6}), toy_key(1).name);
  tier.drop(toy_key(1).name);
  EXPECT_EQ(tier.find_content(Hash128{1, 6}), std::nullopt);
  EXPECT_EQ(tier.find_content(Hash128{2, 6}), toy_key(2).name);
}

}  // namespace
}  // namespace ebb
