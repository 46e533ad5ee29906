#include "model/frame_digest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "model/attention_work.h"
#include "model/output_lengths.h"
#include "model/sealed_frame.h"
#include "model/toy_keys.h"
#include "model/toy_rows.h"

namespace ebb::frame_digest_test {
namespace {

using Rows = std::vector<std::vector<float>>;

constexpr std::int32_t kTokens = 11;
constexpr DigestAsk kAll = {.directions = true, .ranges = true, .value_means = true};

// What a frame's rows are together, in plain loops.
ChannelDigest expected_channels(const Rows& rows) {
  ChannelDigest digest;
  for (std::size_t d = 0; d < rows.front().size(); ++d) {
    double sum = 0.0;
    for (const std::vector<float>& row : rows) sum += double{row[d]};
    const auto at = [&](const std::vector<float>& row) { return row[d]; };
    digest.least.push_back(at(*std::ranges::min_element(rows, {}, at)));
    digest.greatest.push_back(at(*std::ranges::max_element(rows, {}, at)));
    digest.mean.push_back(static_cast<float>(sum / static_cast<double>(rows.size())));
  }
  return digest;
}

FrameDigest expected(const Rows& keys, const Rows& values) {
  FrameDigest digest{.is_read = true,
                     .key_direction = std::vector<float>(keys.front().size(), 0.0F),
                     .keys = expected_channels(keys),
                     .values = expected_channels(values)};
  const auto n = static_cast<float>(keys.size());
  for (const std::vector<float>& key : keys) {
    double length = 0.0;
    for (const float x : key) length += double{x} * double{x};
    length = std::sqrt(length);
    digest.key_norm += static_cast<float>(length) / n;
    for (std::size_t d = 0; d < key.size(); ++d) digest.key_direction[d] += key[d] / static_cast<float>(length) / n;
  }
  return digest;
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t d = 0; d < a.size(); ++d) EXPECT_NEAR(a[d], b[d], 1e-5);
}

void expect_near(const FrameDigest& a, const FrameDigest& b) {
  EXPECT_TRUE(a.is_read);
  EXPECT_NEAR(a.key_norm, b.key_norm, 1e-4);
  expect_near(a.key_direction, b.key_direction);
  for (auto [x, y] : {std::pair(&a.keys, &b.keys), std::pair(&a.values, &b.values)}) {
    EXPECT_EQ(x->least, y->least);
    EXPECT_EQ(x->greatest, y->greatest);
    expect_near(x->mean, y->mean);
  }
}

std::vector<double> random_row(std::mt19937& random, std::size_t n) {
  std::normal_distribution<double> normal;
  std::vector<double> row(n);
  for (double& x : row) x = normal(random);
  return row;
}

TEST(FrameDigest, is_of_the_rows_that_a_frame_holds_in_any_layout) {
  std::mt19937 random(1);
  for (const RowType type : {RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0}) {
    for (const KeyOrder order : {KeyOrder::kByDim, KeyOrder::kByRow}) {
      const FrameLayout layout{
          .row_type = type, .key_order = order, .block_size = 16, .head_dim_k = 64, .head_dim_v = 96};
      // What lies in later slots is not looked at.
      std::vector<std::byte> frame(layout.frame_bytes(), std::byte{0x7f});
      Rows keys;
      Rows values;
      for (std::int32_t slot = 0; slot < kTokens; ++slot) {
        toy::put_key(layout, frame, slot, random_row(random, 64));
        toy::put_value(layout, frame, slot, random_row(random, 96));
        keys.push_back(toy::get_key(layout, frame, slot));
        values.push_back(toy::get_value(layout, frame, slot));
      }
      SCOPED_TRACE(row_type_name(type));
      expect_near(digest_frame(layout, frame, kTokens, kAll), expected(keys, values));
    }
  }
}

TEST(FrameDigest, of_a_sealed_frame_is_that_of_its_codes) {
  // Values whose last run is half of one.
  const FrameLayout layout{.row_type = RowType::kKivi4, .block_size = 32, .head_dim_k = 48, .head_dim_v = 40};
  const FrameLayout open = layout.open_layout();
  std::mt19937 random(2);
  std::vector<std::byte> rows(open.frame_bytes());
  Rows keys;
  Rows values;
  for (std::int32_t slot = 0; slot < 32; ++slot) {
    toy::put_key(open, rows, slot, random_row(random, 48));
    toy::put_value(open, rows, slot, random_row(random, 40));
    keys.push_back(toy::get_key(open, rows, slot));
    values.push_back(toy::get_value(open, rows, slot));
  }
  std::vector<std::byte> sealed(layout.frame_bytes());
  seal_frame(layout, current_kernels(), rows.data(), sealed.data());
  for (std::size_t d = 0; d < 48; ++d) {
    std::vector<float*> run;
    for (std::vector<float>& key : keys) run.push_back(&key[d]);
    toy::seal_run(run);
  }
  for (std::vector<float>& value : values) {
    std::vector<float*> run;
    for (float& x : value) run.push_back(&x);
    toy::seal_run({run.begin(), run.begin() + 32});
    toy::seal_run({run.begin() + 32, run.end()});
  }
  expect_near(digest_frame(layout, sealed, 32, kAll), expected(keys, values));
}

TEST(FrameDigest, has_the_columns_that_are_asked_and_no_others) {
  const FrameLayout layout{.row_type = RowType::kF32, .block_size = 16, .head_dim_k = 4, .head_dim_v = 4};
  const std::vector<std::byte> frame(layout.frame_bytes());
  const FrameDigest means = digest_frame(layout, frame, 2, {.value_means = true});
  EXPECT_EQ(means.values.mean.size(), 4U);
  EXPECT_TRUE(means.key_direction.empty());
  EXPECT_TRUE(means.values.least.empty());
  EXPECT_TRUE(means.keys.mean.empty());
  const FrameDigest directions = digest_frame(layout, frame, 2, {.directions = true});
  EXPECT_EQ(directions.key_direction.size(), 4U);
  EXPECT_TRUE(directions.values.mean.empty());
  EXPECT_EQ(digest_frame(layout, frame, 2, {.ranges = true}).values.greatest.size(), 4U);
}

TEST(FrameDigest, a_key_of_zeros_has_no_direction) {
  const FrameLayout layout{.row_type = RowType::kF32, .block_size = 16, .head_dim_k = 4, .head_dim_v = 4};
  std::vector<std::byte> frame(layout.frame_bytes());
  toy::put_key(layout, frame, 1, {3.0, 0.0, 4.0, 0.0});
  const FrameDigest digest = digest_frame(layout, frame, 2, kAll);
  EXPECT_EQ(digest.key_norm, 2.5F);
  EXPECT_EQ(digest.key_direction, (std::vector<float>{0.3F, 0.0F, 0.4F, 0.0F}));
}

TEST(FrameDigest, rows_that_are_no_numbers_count_as_zeros) {
  const FrameLayout layout{.row_type = RowType::kF32, .block_size = 16, .head_dim_k = 2, .head_dim_v = 2};
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -1e30}) {
    std::vector<std::byte> frame(layout.frame_bytes());
    toy::put_value(layout, frame, 0, {1.0, 2.0});
    toy::put_value(layout, frame, 1, {5.0, bad});
    toy::put_key(layout, frame, 0, {bad, 1.0});
    const FrameDigest digest = digest_frame(layout, frame, 2, kAll);
    EXPECT_EQ(digest.values.mean, (std::vector<float>{0.5F, 1.0F})) << bad;
    EXPECT_EQ(digest.values.greatest, (std::vector<float>{1.0F, 2.0F})) << bad;
    EXPECT_EQ(digest.key_norm, 0.0F) << bad;
  }
}

}  // namespace
}  // namespace ebb::frame_digest_test
