#include "cache/lineage.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

constexpr Hash128 kThis = {.low = 1};
constexpr Hash128 kThat = {.low = 2};

Hash128 hash(const Lineage& lineage) {
  Hasher hasher;
  lineage.hash_into(hasher);
  return hasher.finish();
}

TEST(Lineage, tokens_that_saw_the_same_make_one_run_however_they_came) {
  Lineage at_once;
  at_once.add(kThis, 5);
  at_once.add(kThat, 3);
  Lineage one_by_one;
  for (int i = 0; i < 5; ++i) one_by_one.add(kThis, 1);
  for (int i = 0; i < 3; ++i) one_by_one.add(kThat, 1);
  EXPECT_EQ(one_by_one.runs(), at_once.runs());
  EXPECT_EQ(hash(one_by_one), hash(at_once));
}

TEST(Lineage, who_saw_what_and_in_which_order_is_in_its_hash) {
  Lineage first;
  first.add(kThis, 5);
  first.add(kThat, 3);
  Lineage longer;
  longer.add(kThis, 6);
  longer.add(kThat, 2);
  Lineage turned;
  turned.add(kThat, 5);
  turned.add(kThis, 3);
  EXPECT_NE(hash(first), hash(longer));
  EXPECT_NE(hash(first), hash(turned));
  EXPECT_NE(hash(first), hash(Lineage()));
}

TEST(Lineage, a_cut_keeps_the_runs_of_the_tokens_that_stay) {
  Lineage lineage;
  lineage.add(kThis, 5);
  lineage.add(kThat, 3);
  lineage.add(kThis, 4);
  lineage.truncate(7);
  EXPECT_EQ(lineage.runs(), (std::vector<Lineage::Run>{{kThis, 5}, {kThat, 2}}));
  lineage.truncate(5);
  EXPECT_EQ(lineage.runs(), (std::vector<Lineage::Run>{{kThis, 5}}));
  lineage.add(kThis, 1);
  EXPECT_EQ(lineage.runs(), (std::vector<Lineage::Run>{{kThis, 6}}));
  lineage.truncate(0);
  EXPECT_TRUE(lineage.runs().empty());
}

}  // namespace
}  // namespace ebb
