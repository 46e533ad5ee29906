#include "model/key_digest.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "model/attention_work.h"
#include "model/sealed_frame.h"
#include "model/toy_keys.h"

namespace ebb {
namespace {

constexpr std::int32_t kTokens = 11;

// Of the keys as the frame holds them.
KeyDigest expected(const std::vector<std::vector<float>>& keys) {
  KeyDigest digest{.direction = std::vector<float>(keys.front().size(), 0.0F)};
  const auto n = static_cast<float>(keys.size());
  for (const std::vector<float>& key : keys) {
    double length = 0.0;
    for (const float x : key) length += double{x} * double{x};
    length = std::sqrt(length);
    digest.norm += static_cast<float>(length) / n;
    for (std::size_t d = 0; d < key.size(); ++d) digest.direction[d] += key[d] / static_cast<float>(length) / n;
  }
  return digest;
}

void expect_near(const KeyDigest& a, const KeyDigest& b) {
  EXPECT_NEAR(a.norm, b.norm, 1e-4);
  ASSERT_EQ(a.direction.size(), b.direction.size());
  for (std::size_t d = 0; d < a.direction.size(); ++d) EXPECT_NEAR(a.direction[d], b.direction[d], 1e-5);
}

TEST(KeyDigest, is_of_the_keys_that_a_frame_holds_in_any_layout) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  for (const RowType type : {RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0}) {
    for (const KeyOrder order : {KeyOrder::kByDim, KeyOrder::kByRow}) {
      const FrameLayout layout{
          .row_type = type, .key_order = order, .block_size = 16, .head_dim_k = 64, .head_dim_v = 32};
      // What lies in later slots is not looked at.
      std::vector<std::byte> frame(layout.frame_bytes(), std::byte{0x7f});
      std::vector<std::vector<float>> keys;
      for (std::int32_t slot = 0; slot < kTokens; ++slot) {
        std::vector<double> key(64);
        for (double& x : key) x = normal(random);
        toy::put_key(layout, frame, slot, key);
        keys.push_back(toy::get_key(layout, frame, slot));
      }
      SCOPED_TRACE(row_type_name(type));
      expect_near(digest_keys(layout, frame, kTokens), expected(keys));
    }
  }
}

TEST(KeyDigest, of_a_sealed_frame_is_near_that_of_its_keys) {
  const FrameLayout layout{.row_type = RowType::kKivi4, .block_size = 32, .head_dim_k = 48, .head_dim_v = 32};
  const FrameLayout open = layout.open_layout();
  std::mt19937 random(2);
  std::normal_distribution<double> normal;
  std::vector<std::byte> rows(open.frame_bytes());
  for (std::int32_t slot = 0; slot < 32; ++slot) {
    std::vector<double> key(48);
    for (double& x : key) x = normal(random);
    toy::put_key(open, rows, slot, key);
  }
  std::vector<std::byte> sealed(layout.frame_bytes());
  seal_frame(layout, current_kernels(), rows.data(), sealed.data());
  const KeyDigest of_rows = digest_keys(open, rows, 32);
  const KeyDigest of_codes = digest_keys(layout, sealed, 32);
  EXPECT_NEAR(of_codes.norm, of_rows.norm, 0.05F * of_rows.norm);
  for (std::size_t d = 0; d < 48; ++d) EXPECT_NEAR(of_codes.direction[d], of_rows.direction[d], 0.02);
}

TEST(KeyDigest, a_key_of_zeros_has_no_direction) {
  const FrameLayout layout{.row_type = RowType::kF32, .block_size = 16, .head_dim_k = 4, .head_dim_v = 4};
  std::vector<std::byte> frame(layout.frame_bytes());
  toy::put_key(layout, frame, 1, {3.0, 0.0, 4.0, 0.0});
  const KeyDigest digest = digest_keys(layout, frame, 2);
  EXPECT_EQ(digest.norm, 2.5F);
  EXPECT_EQ(digest.direction, (std::vector<float>{0.3F, 0.0F, 0.4F, 0.0F}));
}

}  // namespace
}  // namespace ebb
