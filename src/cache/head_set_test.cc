#include "cache/head_set.h"

#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace ebb {
namespace {

HeadSet make(std::size_t n_heads, const std::set<std::size_t>& of) {
  HeadSet heads(n_heads);
  for (const std::size_t head : of) heads.add(head);
  return heads;
}

std::vector<std::size_t> listed(const HeadSet& heads) {
  std::vector<std::size_t> listed;
  heads.for_each([&](std::size_t head) { listed.push_back(head); });
  return listed;
}

TEST(HeadSet, all_heads_are_those_of_the_shape_and_no_others) {
  for (const std::size_t n : {1U, 63U, 64U, 65U, 128U, 208U}) {
    const HeadSet all = HeadSet::all(n);
    EXPECT_EQ(std::cmp_equal(all.count(), n), true) << n;
    EXPECT_EQ(listed(all).back(), n - 1);
    EXPECT_TRUE((HeadSet(n) | all) == all);
    EXPECT_TRUE((all - all).empty());
  }
  EXPECT_TRUE(HeadSet().empty());
  EXPECT_TRUE(HeadSet::all(0) == HeadSet());
}

TEST(HeadSet, agrees_with_a_set_of_numbers) {
  std::mt19937 random(3);
  for (const std::size_t n : {5U, 64U, 150U}) {
    std::set<std::size_t> a;
    std::set<std::size_t> b;
    for (std::size_t i = 0; i < n; ++i) {
      a.insert(random() % n);
      if (random() % 2 == 0) b.insert(random() % n);
    }
    const HeadSet x = make(n, a);
    const HeadSet y = make(n, b);
    EXPECT_EQ(listed(x), (std::vector<std::size_t>(a.begin(), a.end()))) << "by rising head";
    EXPECT_EQ(std::ssize(a), x.count());
    for (std::size_t head = 0; head < n; ++head) {
      EXPECT_EQ(x.contains(head), a.contains(head));
      EXPECT_EQ((x | y).contains(head), a.contains(head) || b.contains(head));
      EXPECT_EQ((x & y).contains(head), a.contains(head) && b.contains(head));
      EXPECT_EQ((x - y).contains(head), a.contains(head) && !b.contains(head));
    }
    HeadSet z = x;
    z.remove(*a.begin());
    EXPECT_FALSE(z == x);
    z.add(*a.begin());
    EXPECT_TRUE(z == x);
  }
}

TEST(HeadSetDeathTest, heads_of_another_shape_are_refused) {
  HeadSet heads(64);
  EXPECT_DEATH(heads.add(64), "head 64 of 64");
  EXPECT_DEATH(heads.remove(70), "head 70 of 64");
  EXPECT_DEATH(heads |= HeadSet(3), "a set of 64 heads meets one of 3");
}

}  // namespace
}  // namespace ebb
