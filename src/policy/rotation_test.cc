#include "policy/rotation.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<BlockShift> shifts(std::int32_t n_blocks, const std::vector<std::int32_t>& victims) {
  return find_shifts(n_blocks, victims, 16, 100).value();
}

std::string refusal(std::int32_t n_blocks, const std::vector<std::int32_t>& victims, std::int32_t n_rows = 100) {
  return find_shifts(n_blocks, victims, 16, n_rows).status().message();
}

TEST(Shifts, move_survivors_behind_holes_by_as_many_blocks_as_left_before_them) {
  EXPECT_THAT(shifts(8, {2, 3, 5}), ElementsAre(BlockShift{4, 2, 32}, BlockShift{6, 3, 48}, BlockShift{7, 4, 48}));
  EXPECT_THAT(shifts(3, {2}), IsEmpty()) << "nothing stands behind the last one";
  EXPECT_THAT(shifts(8, {}), IsEmpty());
}

TEST(Shifts, are_those_of_a_plain_walk_over_the_table) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const auto n_blocks = static_cast<std::int32_t>(random() % 20);
    std::vector<std::int32_t> victims;
    std::vector<BlockShift> expected;
    std::int32_t next = 0;
    for (std::int32_t block = 0; block < n_blocks; ++block) {
      if (random() % 3 == 0) {
        victims.push_back(block);
        continue;
      }
      if (block != next) expected.push_back({.from = block, .to = next, .n_tokens = (block - next) * 16});
      ++next;
    }
    ASSERT_EQ(shifts(n_blocks, victims), expected);
  }
}

TEST(Shifts, refuse_victims_that_are_no_blocks_and_moves_beyond_the_table) {
  EXPECT_THAT(refusal(4, {4}), HasSubstr("block 4 is to leave a table of 4 blocks"));
  EXPECT_THAT(refusal(4, {-1}), HasSubstr("no such block"));
  EXPECT_THAT(refusal(4, {2, 2}), HasSubstr("name each once"));
  EXPECT_THAT(refusal(4, {2, 1}), HasSubstr("ascending"));
  EXPECT_THAT(refusal(8, {0, 1}, 2), HasSubstr("moves by 2 blocks, and the rotation table has 2 rows"));
  EXPECT_EQ(refusal(8, {0, 1}, 3), "") << "row 2 is the last of three";
  EXPECT_THAT(find_shifts(1 << 30, {}, 1 << 30, 1).status().message(), HasSubstr("a table of"));
  EXPECT_FALSE(find_shifts(4, {}, 0, 1).ok());
}

TEST(RotationTable, holds_cosines_and_negative_sines_of_whole_blocks) {
  const RotationTable table = RotationTable::make(3, 16, 4).value();
  EXPECT_THAT(std::span(table.cos).first(2), ElementsAre(1.0F, 1.0F));
  EXPECT_THAT(std::span(table.negative_sin).first(2), ElementsAre(-0.0F, -0.0F)) << "row 0 turns by nothing";
  EXPECT_EQ(table.cos[4], static_cast<float>(std::cos(32.0)));
  EXPECT_EQ(table.negative_sin[4], static_cast<float>(-std::sin(32.0)));
  EXPECT_EQ(table.cos[5], static_cast<float>(std::cos(0.32))) << "10000^(-2/4) is a hundredth";
  EXPECT_EQ(table.negative_sin[5], static_cast<float>(-std::sin(0.32)));
}

TEST(RotationTable, turns_a_key_back_to_where_it_would_have_stood) {
  constexpr int kDim = 8;
  const std::vector<double> raw = {0.3, -1.0, 0.5, 2.0, -0.7, 0.1, 0.9, -0.2};
  const auto key_at = [&](int position) {
    std::vector<float> key(kDim);
    for (int j = 0; j < kDim / 2; ++j) {
      const double angle = position * std::pow(500.0, -2.0 * j / kDim);
      const auto first = static_cast<std::size_t>(j);
      const std::size_t second = first + kDim / 2;
      key[first] = static_cast<float>(raw[first] * std::cos(angle) - raw[second] * std::sin(angle));
      key[second] = static_cast<float>(raw[first] * std::sin(angle) + raw[second] * std::cos(angle));
    }
    return key;
  };
  const RotationTable table = RotationTable::make(4, 16, kDim, 500.0).value();
  std::vector<float> key = key_at(100);
  turn_back(key, table, 2);
  EXPECT_THAT(key, ::testing::Pointwise(::testing::FloatNear(1e-5F), key_at(68)));
  turn_back(key, table, 3);
  EXPECT_THAT(key, ::testing::Pointwise(::testing::FloatNear(1e-5F), key_at(20))) << "turns compose";
}

TEST(RotationTable, refuses_what_gives_no_angles) {
  for (const double theta : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_THAT(RotationTable::make(2, 16, 8, theta).status().message(), HasSubstr("a rotary base of"));
  }
  EXPECT_FALSE(RotationTable::make(2, 16, 7).ok());
  EXPECT_FALSE(RotationTable::make(2, 16, 0).ok());
  EXPECT_FALSE(RotationTable::make(0, 16, 8).ok());
  EXPECT_FALSE(RotationTable::make(2, 0, 8).ok());
  EXPECT_FALSE(RotationTable::make(1 << 30, 16, 1 << 10).ok()) << "larger than any memory";
}

}  // namespace
}  // namespace ebb
