#include "model/key_digest.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "base/to_size.h"
#include "model/toy_digests.h"

namespace ebb {
namespace {

using toy::digest_of;
using toy::frame_of;
using toy::kDims;
using toy::layout_of;
using toy::random_rows;
using toy::Rows;

TEST(KeyDigest, keys_lie_in_their_box_and_near_their_sketch) {
  std::mt19937 random(1);
  for (const std::int32_t n_tokens : {1, 5, 16, 64, 100, 128}) {
    const FrameLayout frame = layout_of(n_tokens, RowType::kF32);
    const Rows keys = random_rows(random, n_tokens);
    const FrameRows rows = FrameRows::keys_of(frame, frame_of(frame, keys), n_tokens);
    const std::vector<std::byte> digest = digest_of(frame, keys);
    const KeyDigestLayout layout = KeyDigestLayout::of(frame);
    std::vector<float> least(kDims), greatest(kDims), middle(kDims), radius(kDims);
    std::vector<float> planes(to_size(kDims * layout.n_slots));
    read_box(layout, digest, {.least = least, .greatest = greatest});
    read_cuboid(layout, digest, {.middle = middle, .radius = radius});
    read_sketch(layout, digest, planes);
    const std::vector<std::size_t> sketched = sketched_keys(layout, rows, digest);
    ASSERT_EQ(sketched.size(), to_size(layout.n_keys));
    for (std::size_t d = 0; d < to_size(kDims); ++d) {
      double distance = 0.0;
      float lowest = rows.row(0)[d], highest = lowest;
      for (std::size_t slot = 0; slot < keys.size(); ++slot) {
        const float x = rows.row(slot)[d];
        EXPECT_GE(x, least[d]);
        EXPECT_LE(x, greatest[d]);
        lowest = std::min(lowest, x);
        highest = std::max(highest, x);
        distance += std::abs(double{x} - double{middle[d]});
      }
      // Of the box, the lower side has eleven bits and its width five.
      const float rounding = 1e-3F * std::abs(lowest);
      EXPECT_NEAR(least[d], lowest, rounding);
      EXPECT_LE(greatest[d] - highest, 0.0626F * (highest - lowest) + rounding + 0.004F);
      for (std::size_t i = 0; i < sketched.size(); ++i) {
        EXPECT_NEAR(rows.row(sketched[i])[d], planes[d * to_size(layout.n_slots) + i],
                    (greatest[d] - least[d]) / 6.0F + 1e-6F);
      }
      EXPECT_NEAR(radius[d], distance / n_tokens, 0.003 * double{greatest[d] - least[d]} + 1e-6);
      EXPECT_NEAR(middle[d], (least[d] + greatest[d]) / 2, 1e-6);
    }
  }
}

TEST(KeyDigest, sketches_the_keys_that_lie_farthest_from_the_middle) {
  std::mt19937 random(3);
  Rows keys = random_rows(random, 64);
  for (const std::size_t far : {2U, 17U, 18U, 40U, 63U}) {
    for (double& x : keys[far]) x *= 4.0;
  }
  const FrameLayout frame = layout_of(64, RowType::kF16);
  const KeyDigestLayout layout = KeyDigestLayout::of(frame);
  const FrameRows rows = FrameRows::keys_of(frame, frame_of(frame, keys), 64);
  const std::vector<std::size_t> sketched = sketched_keys(layout, rows, digest_of(frame, keys));
  EXPECT_EQ(sketched.size(), 32U);
  EXPECT_TRUE(std::ranges::is_sorted(sketched));
  for (const std::size_t far : {2U, 17U, 18U, 40U, 63U}) EXPECT_TRUE(std::ranges::binary_search(sketched, far)) << far;
}

TEST(KeyDigest, of_halves_and_bytes_and_codes_is_that_of_the_same_numbers) {
  std::mt19937 random(2);
  const Rows keys = random_rows(random, 16);
  const std::vector<std::byte> exact = digest_of(layout_of(16), keys);
  std::vector<float> wanted(to_size(kDims * 16)), got(wanted.size());
  read_sketch(KeyDigestLayout::of(layout_of(16)), exact, wanted);
  for (const RowType type : {RowType::kF16, RowType::kBF16, RowType::kQ8_0}) {
    const FrameLayout frame = layout_of(16, type);
    read_sketch(KeyDigestLayout::of(frame), digest_of(frame, keys), got);
    std::size_t n_other = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) n_other += std::abs(wanted[i] - got[i]) > 0.05F ? 1 : 0;
    // A range may round to the next step, and its keys with it.
    EXPECT_LT(n_other, wanted.size() / 25) << row_type_name(type);
  }
}

TEST(KeyDigest, takes_a_twentieth_of_a_frame_at_most_but_for_half_of_its_keys) {
  struct Case {
    RowType type;
    std::int32_t block_size, n_dims, n_keys;
    double most;
  };
  for (const Case& one : {Case{RowType::kF16, 64, 64, 32, 0.05}, Case{RowType::kF16, 64, 32, 32, 0.05},
                          Case{RowType::kF16, 64, 128, 32, 0.05}, Case{RowType::kF16, 128, 64, 80, 0.05},
                          Case{RowType::kF32, 64, 64, 64, 0.05}, Case{RowType::kQ8_0, 64, 64, 32, 0.09},
                          Case{RowType::kF16, 32, 64, 32, 0.094}, Case{RowType::kF16, 16, 64, 16, 0.125}}) {
    const FrameLayout frame{
        .row_type = one.type, .block_size = one.block_size, .head_dim_k = one.n_dims, .head_dim_v = one.n_dims};
    const KeyDigestLayout layout = KeyDigestLayout::of(frame);
    EXPECT_EQ(layout.n_keys, one.n_keys) << one.block_size << ' ' << one.n_dims;
    EXPECT_LE(static_cast<double>(layout.bytes()), one.most * static_cast<double>(frame.frame_bytes()));
  }
}

TEST(KeyDigest, of_numbers_that_are_none_or_too_large_is_finite) {
  Rows keys(16, std::vector<double>(to_size(kDims), 1.0));
  keys[3][5] = std::nan("");
  keys[4][6] = 1e30;
  keys[5][7] = 9e4;
  const FrameLayout frame = layout_of(16);
  const KeyDigestLayout layout = KeyDigestLayout::of(frame);
  std::vector<float> planes(to_size(kDims * layout.n_slots));
  read_sketch(layout, digest_of(frame, keys), planes);
  EXPECT_TRUE(std::ranges::all_of(planes, [](float x) { return std::isfinite(x); }));
}

}  // namespace
}  // namespace ebb
