#include "policy/kvcrush.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(KvCrush, marks_the_half_with_the_largest_sums_the_earlier_among_equals) {
  const std::vector<double> sums = {1, 3, 3, 3, 0, 2, 3};
  EXPECT_THAT(mark_upper_half(sums), ElementsAre(0, 1, 1, 1, 0, 0, 0));
  EXPECT_THAT(mark_upper_half(std::vector<double>(4, 0.0)), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(mark_upper_half({}), IsEmpty());
}

TEST(KvCrush, makes_the_five_anchors) {
  std::mt19937 random(0);
  // Three blocks of four: 1 stands in 3, 2, 1 and 0 of them.
  const std::vector<std::uint8_t> bits = {1, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0};
  EXPECT_THAT(make_crush_anchor(CrushAnchor::kZeros, bits, 4, random), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(make_crush_anchor(CrushAnchor::kOnes, bits, 4, random), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(make_crush_anchor(CrushAnchor::kAlternating, bits, 4, random), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(make_crush_anchor(CrushAnchor::kMean, bits, 4, random), ElementsAre(1, 1, 0, 0));
  const std::vector<std::uint8_t> two = {1, 1, 1, 0};
  EXPECT_THAT(make_crush_anchor(CrushAnchor::kMean, two, 2, random), ElementsAre(1, 0)) << "exactly half gives 0";
  EXPECT_EQ(random, std::mt19937(0)) << "none of them asks the generator";
}

TEST(KvCrush, takes_random_bits_from_the_top_of_each_output_and_goes_on_with_the_stream) {
  // The first outputs of mt19937 seeded with 5489, as the standard's generator begins.
  const std::vector<std::uint32_t> outputs = {3499211612U, 581869302U,  3890346734U, 3586334585U,
                                              545404204U,  4161255391U, 3922919429U, 949333985U};
  std::mt19937 random(5489);
  for (const std::size_t begin : {std::size_t{0}, std::size_t{4}}) {
    std::vector<std::uint8_t> expected;
    for (std::size_t i = begin; i < begin + 4; ++i) expected.push_back(static_cast<std::uint8_t>(outputs[i] >> 31));
    EXPECT_EQ(make_crush_anchor(CrushAnchor::kRandom, {}, 4, random), expected);
  }
}

TEST(KvCrush, rescues_the_nearest_and_every_step_behind_it) {
  // Blocks of two with none, one, or two bits: sums above the median mark them. Distances to ZEROS: 0 1 2 0 1 2.
  const std::vector<double> sums = {0, 0, 9, 0, 9, 9, 0, 0, 9, 0, 9, 9};
  const std::vector<std::int32_t> all = {0, 1, 2, 3, 4, 5};
  std::mt19937 random(0);
  const auto rescue = [&](std::span<const std::int32_t> victims, std::int32_t budget, CrushAnchor anchor) {
    return rescue_blocks({.sums = sums, .block_size = 2, .victims = victims},
                         {.budget_blocks = budget, .anchor = anchor}, random);
  };
  // The line is 0 3 1 4 2 5.
  EXPECT_THAT(rescue(all, 1, CrushAnchor::kZeros), ElementsAre(0));
  EXPECT_THAT(rescue(all, 2, CrushAnchor::kZeros), ElementsAre(0, 4));
  EXPECT_THAT(rescue(all, 3, CrushAnchor::kZeros), ElementsAre(0, 1, 2));
  EXPECT_THAT(rescue(all, 4, CrushAnchor::kZeros), ElementsAre(0, 1, 3, 4)) << "steps of 1: the farthest two leave";
  EXPECT_THAT(rescue(all, 6, CrushAnchor::kZeros), ElementsAre(0, 1, 2, 3, 4, 5));
  // From ONES the line is 2 5 1 4 0 3.
  EXPECT_THAT(rescue(all, 2, CrushAnchor::kOnes), ElementsAre(2, 4));
  const std::vector<std::int32_t> some = {1, 2, 3};
  EXPECT_THAT(rescue(some, 1, CrushAnchor::kZeros), ElementsAre(3)) << "only victims are rescued";
}

TEST(KvCrush, rescues_none_without_a_budget_or_with_more_than_there_are_victims) {
  const std::vector<double> sums(8, 1.0);
  const std::vector<std::int32_t> victims = {0, 1};
  std::mt19937 random(0);
  for (const std::int32_t budget : {0, 3}) {
    EXPECT_THAT(rescue_blocks({.sums = sums, .block_size = 2, .victims = victims}, {.budget_blocks = budget}, random),
                IsEmpty());
  }
  EXPECT_EQ(random, std::mt19937(0)) << "what does not run takes no bits";
}

}  // namespace
}  // namespace ebb
