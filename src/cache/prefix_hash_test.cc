#include "cache/prefix_hash.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

namespace ebb {
namespace {

using Leaves = std::vector<Hash128>;

Leaves first(const Leaves& leaves, std::size_t n) {
  return {leaves.begin(), leaves.begin() + static_cast<std::ptrdiff_t>(n)};
}

// From scratch: all of the leaves, put one behind the other.
Hash128 from_scratch(const Leaves& leaves, std::size_t n) {
  PrefixHash::Peaks peaks = PrefixHash().peaks(0);
  for (const Hash128& leaf : first(leaves, n)) peaks.push(leaf);
  return peaks.hash();
}

TEST(PrefixHash, agrees_with_one_from_scratch_whatever_changed) {
  std::mt19937_64 random(1);
  PrefixHash hash;
  Leaves leaves;
  const auto any_leaf = [&] { return random() % 4 == 0 ? Hash128() : Hash128{.low = random() % 5}; };
  for (int i = 0; i < 4000; ++i) {
    const std::uint64_t choice = random() % 20;
    if (choice < 9 || leaves.empty()) {
      leaves.push_back(any_leaf());
      hash.push(leaves.back());
    } else if (choice < 19) {
      const std::size_t at = random() % leaves.size();
      leaves[at] = any_leaf();
      hash.set(at, leaves[at]);
    } else {
      leaves.resize(leaves.size() - random() % std::min<std::size_t>(leaves.size() + 1, 12));
      hash.truncate(leaves.size());
    }
    ASSERT_EQ(hash.size(), leaves.size());
    const std::size_t n = random() % (leaves.size() + 1);
    ASSERT_EQ(hash.hash(n), from_scratch(leaves, n)) << "the first " << n << " of " << leaves.size();
    ASSERT_EQ(hash.hash(leaves.size()), from_scratch(leaves, leaves.size()));
    if (n > 0) {
      ASSERT_EQ(hash.leaf(n - 1), leaves[n - 1]);
    }
  }
}

TEST(PrefixHash, peaks_go_on_as_the_sequence_would) {
  std::mt19937_64 random(2);
  PrefixHash hash;
  Leaves leaves;
  for (std::size_t n = 0; n < 70; ++n) {
    PrefixHash::Peaks peaks = hash.peaks(n);
    Leaves longer = leaves;
    for (int i = 0; i < 20; ++i) {
      longer.push_back({.low = random()});
      peaks.push(longer.back());
    }
    ASSERT_EQ(peaks.hash(), from_scratch(longer, longer.size())) << n;
    leaves.push_back({.low = random()});
    hash.push(leaves.back());
  }
}

TEST(PrefixHash, sequences_of_one_length_that_differ_anywhere_have_different_hashes) {
  for (const std::size_t n : {1U, 5U, 8U, 11U}) {
    std::set<Hash128> seen;
    PrefixHash hash;
    for (std::size_t i = 0; i < n; ++i) hash.push({});
    seen.insert(hash.hash(n));
    for (std::size_t i = 0; i < n; ++i) {
      for (const std::uint64_t leaf : {1U, 2U}) {
        hash.set(i, {.low = leaf});
        EXPECT_TRUE(seen.insert(hash.hash(n)).second) << "leaf " << i << " of " << n;
      }
      hash.set(i, {});
    }
    // A leaf that stands elsewhere, and two that changed places.
    if (n < 2) continue;
    hash.set(0, {.low = 1});
    hash.set(n - 1, {.low = 2});
    const Hash128 one_way = hash.hash(n);
    hash.set(0, {.low = 2});
    hash.set(n - 1, {.low = 1});
    EXPECT_NE(hash.hash(n), one_way);
  }
}

TEST(PrefixHash, what_stands_behind_does_not_matter) {
  PrefixHash hash;
  for (std::uint64_t i = 0; i < 9; ++i) hash.push({.low = i + 1});
  const Hash128 before = hash.hash(5);
  hash.set(5, {});
  EXPECT_EQ(hash.hash(5), before);
  hash.truncate(5);
  EXPECT_EQ(hash.hash(5), before);
  hash.push({.low = 77});
  EXPECT_EQ(hash.hash(5), before);
}

TEST(PrefixHashDeathTest, leaves_that_are_not_there_are_refused) {
  PrefixHash hash;
  hash.push({});
  EXPECT_DEATH(hash.set(1, {}), "leaf 1 of 1");
  EXPECT_DEATH((void)hash.hash(2), "the first 2 of 1 leaves");
  EXPECT_DEATH(hash.truncate(2), "the first 2 of 1 leaves");
}

}  // namespace
}  // namespace ebb
