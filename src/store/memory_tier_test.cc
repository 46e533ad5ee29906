#include "store/memory_tier.h"

#include <gtest/gtest.h>

#include "store/toy_record.h"

namespace ebb {
namespace {

void put_backed(MemoryTier& tier, std::uint64_t number) {
  ASSERT_TRUE(tier.put(make_toy_record({.number = number})).ok());
  tier.set_backed(toy_key(number).name, true);
}

TEST(MemoryTier, drops_the_least_recently_used_under_its_cap) {
  MemoryTier tier(2 * kOne);
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1})).ok());
  ASSERT_TRUE(tier.put(make_toy_record({.number = 2})).ok());
  ASSERT_TRUE(tier.get(toy_key(1), {}).ok());
  ASSERT_TRUE(tier.put(make_toy_record({.number = 3})).ok());
  EXPECT_TRUE(tier.find(toy_key(1).name));
  EXPECT_FALSE(tier.find(toy_key(2).name));
  EXPECT_EQ(tier.stats().n_dropped, 1);
  EXPECT_EQ(tier.stats().bytes, 2 * kOne);
  tier.check_invariants();
}

TEST(MemoryTier, drops_what_lies_elsewhere_too_before_what_lies_only_here) {
  MemoryTier tier(2 * kOne);
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1})).ok());
  put_backed(tier, 2);
  ASSERT_TRUE(tier.put(make_toy_record({.number = 3})).ok());
  EXPECT_TRUE(tier.find(toy_key(1).name));
  EXPECT_FALSE(tier.find(toy_key(2).name));
  // Once it has been written, it is the cheaper one.
  tier.set_backed(toy_key(3).name, true);
  ASSERT_TRUE(tier.put(make_toy_record({.number = 4})).ok());
  EXPECT_TRUE(tier.find(toy_key(1).name));
  EXPECT_FALSE(tier.find(toy_key(3).name));
  tier.check_invariants();
}

TEST(MemoryTier, lets_go_of_what_nobody_asks_for_even_if_it_lies_only_here) {
  MemoryTier tier(4 * kOne);
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1})).ok());
  for (std::uint64_t n = 2; n < 100; ++n) put_backed(tier, n);
  EXPECT_FALSE(tier.find(toy_key(1).name));
  tier.check_invariants();
}

TEST(MemoryTier, refuses_a_record_larger_than_itself_and_keeps_the_rest) {
  MemoryTier tier(kOne);
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1})).ok());
  EXPECT_EQ(tier.put(make_toy_record({.number = 2, .n_frames = 20})).code(), Code::kOutOfBudget);
  EXPECT_TRUE(tier.get(toy_key(1), {}).ok());
}

TEST(MemoryTier, a_foreign_record_is_a_counted_refusal_and_then_a_miss) {
  MemoryTier tier(1 << 20);
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1})).ok());
  RecordKey foreign = toy_key(1);
  foreign.model = {9, 9};
  EXPECT_EQ(tier.get(foreign, {}).status().code(), Code::kDamaged);
  EXPECT_EQ(tier.get(toy_key(1), {}).status().code(), Code::kNotFound);
  EXPECT_EQ(tier.stats().n_refused, 1);
  EXPECT_EQ(tier.stats().n_misses, 1);
  EXPECT_FALSE(tier.stats().last_error.empty());
  tier.check_invariants();
}

TEST(MemoryTier, refuses_the_very_record_that_was_read_and_not_its_successor) {
  MemoryTier tier(1 << 20);
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1})).ok());
  const RecordHandle read = *tier.get(toy_key(1), {});
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1})).ok());
  tier.refuse(read);
  EXPECT_TRUE(tier.find(toy_key(1).name));
  tier.refuse(*tier.get(toy_key(1), {}));
  EXPECT_FALSE(tier.find(toy_key(1).name));
  EXPECT_EQ(tier.stats().n_refused, 1);
}

TEST(MemoryTier, some_frames_are_a_handle_on_the_whole_record_and_frames_that_it_lacks_a_refusal) {
  MemoryTier tier(1 << 20);
  const RecordHandle record = make_toy_record({.number = 1, .n_frames = 4});
  ASSERT_TRUE(tier.put(record).ok());
  const std::vector<std::int32_t> some = {1, 3};
  const Result<RecordHandle> got = tier.get(toy_key(1), some);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(*got, record);
  EXPECT_TRUE(is_toy_record(**got, {.number = 1, .n_frames = 4}, some));
  EXPECT_EQ(tier.get(toy_key(1), std::vector<std::int32_t>{3, 4}).status().code(), Code::kDamaged);
  EXPECT_FALSE(tier.find(toy_key(1).name));
  EXPECT_EQ(tier.stats().n_refused, 1);
  tier.check_invariants();
}

TEST(MemoryTier, knows_what_bytes_it_keeps_under_a_name) {
  MemoryTier tier(1 << 20);
  EXPECT_FALSE(tier.find(toy_key(1).name));
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1})).ok());
  EXPECT_EQ(tier.find(toy_key(1).name)->body, toy_body({.number = 1}));
  ASSERT_TRUE(tier.put(make_toy_record({.number = 1, .variant = 1})).ok());
  EXPECT_EQ(tier.find(toy_key(1).name)->body, toy_body({.number = 1, .variant = 1}));
}

}  // namespace
}  // namespace ebb
