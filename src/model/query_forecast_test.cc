// Forecasts: turned to the mean of the positions to come, as turning to each of them and taking the mean gives.
#include "model/query_forecast.h"

#include <cmath>
#include <numbers>
#include <random>

#include <gtest/gtest.h>

#include "model/expected_attention.h"
#include "model/expected_kernels.h"

namespace ebb::query_forecast_test {
namespace {

constexpr std::size_t kDims = 8;

RopeFrequencies some_frequencies(RopeKind kind) {
  return {.kind = kind, .per_anchor = {1.0, std::numbers::pi, 2.0 * std::numbers::pi, 1e-4}};
}

TEST(MeanRotation, is_the_mean_of_the_rotations_by_each_anchor) {
  for (const std::int32_t first : {0, 7, 4000}) {
    for (const std::int32_t n : {1, 2, 5, 512}) {
      const RopeFrequencies frequencies = some_frequencies(RopeKind::kNeoX);
      const KeyRotation mean = make_mean_rotation(frequencies, Position(first), n);
      for (std::size_t i = 0; i < frequencies.per_anchor.size(); ++i) {
        double cosine = 0.0;
        double sine = 0.0;
        for (std::int32_t p = first; p < first + n; ++p) {
          cosine += std::cos(frequencies.per_anchor[i] * p) / n;
          sine += std::sin(frequencies.per_anchor[i] * p) / n;
        }
        EXPECT_NEAR(mean.cosines[i], cosine, 1e-6) << first << " " << n << " " << i;
        EXPECT_NEAR(mean.sines[i], sine, 1e-6) << first << " " << n << " " << i;
      }
    }
  }
}

// Of one query head whose queries are these rows.
struct Toy {
  Toy(RopeKind kind, double magnitude)
      : forecaster({.shape = {.n_layers = 1, .n_heads = 1, .n_dims = kDims},
                    .scale = 0.5,
                    .layers = {{.frequencies = some_frequencies(kind), .magnitude = magnitude}}}),
        moments(forecaster.make_moments(Position(0))) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal(0.3F, 1.0F);
    for (float& x : rows) x = normal(random);
    moments.add(LayerIndex(0),
                {.q = rows.data(), .row_stride = kDims, .head_stride = kDims, .first = Position(0), .n_rows = 20}, 0,
                1);
  }

  Forecaster forecaster;
  QueryMoments moments;
  std::vector<float> rows = std::vector<float>(20 * kDims);
};

TEST(QueryForecast, of_one_position_is_mean_and_covariance_of_queries_that_are_rotated_there) {
  for (const RopeKind kind : {RopeKind::kNeoX, RopeKind::kNormal}) {
    constexpr double kMagnitude = 1.25;
    Toy toy(kind, kMagnitude);
    // The same queries, each rotated to position 9 first; their forecast turns nothing more.
    const KeyRotation there = make_key_rotation(some_frequencies(kind), 9);
    std::vector<float> rotated = toy.rows;
    for (std::size_t row = 0; row < 20; ++row) {
      rotate_row(there, std::span(rotated).subspan(row * kDims, kDims));
      for (std::size_t d = 0; d < kDims; ++d) rotated[row * kDims + d] *= static_cast<float>(kMagnitude);
    }
    Toy plain(kind, 1.0);
    plain.moments = plain.forecaster.make_moments(Position(0));
    plain.moments.add(
        LayerIndex(0),
        {.q = rotated.data(), .row_stride = kDims, .head_stride = kDims, .first = Position(0), .n_rows = 20}, 0, 1);
    const QueryForecast turned = toy.forecaster.forecast(toy.moments, 0, {.first = Position(9), .n_anchors = 1})[0];
    const QueryForecast before = plain.forecaster.forecast(plain.moments, 0, {.first = Position(0), .n_anchors = 1})[0];
    for (std::size_t i = 0; i < kDims; ++i) EXPECT_NEAR(turned.mean[i], before.mean[i], 1e-5);
    ASSERT_EQ(turned.spread.size(), QueryImage::n_products(kDims));
    for (std::size_t i = 0; i < turned.spread.size(); ++i) EXPECT_NEAR(turned.spread[i], before.spread[i], 1e-5) << i;
  }
}

TEST(QueryForecast, without_spread_costs_and_gives_none) {
  Toy toy(RopeKind::kNeoX, 1.0);
  const auto group = toy.forecaster.forecast(toy.moments, 0, {.first = Position(5), .with_spread = false});
  EXPECT_TRUE(group[0].spread.empty());
  ExpectedAttention expected(group);
  const std::vector<float> keys(3 * kDims, 1.0F);
  expected.add({.n_tokens = 3, .keys = keys, .values = keys});
  EXPECT_NEAR(expected.finish()[0].attention, 1.0 / 3.0, 1e-12);
}

TEST(ExpectedKernels, give_the_same_bits_with_every_instruction_set) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const std::size_t n_dims : {2UL, 16UL, 40UL, 128UL}) {
    std::vector<float> mean(n_dims);
    std::vector<float> spread(QueryImage::n_products(n_dims));
    std::vector<float> keys(n_dims * kExpectedLanes);
    for (auto* all : {&mean, &spread, &keys}) {
      for (float& x : *all) x = normal(random);
    }
    std::vector<const ExpectedKernels*> sets = {&kPortableExpectedKernels};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) sets.push_back(&kAvx2ExpectedKernels);
    if (__builtin_cpu_supports("avx512f")) sets.push_back(&kAvx512ExpectedKernels);
#endif
    std::vector<float> first(kExpectedLanes);
    sets[0]->find_logits(mean.data(), spread.data(), keys.data(), n_dims, first.data());
    for (const ExpectedKernels* set : sets) {
      std::vector<float> logits(kExpectedLanes);
      set->find_logits(mean.data(), spread.data(), keys.data(), n_dims, logits.data());
      EXPECT_EQ(logits, first) << n_dims;
    }
    double plain = 0.0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < n_dims; ++i) {
      plain += double{mean[i]} * double{keys[i * kExpectedLanes]};
      for (std::size_t j = i; j < n_dims; ++j) {
        plain += double{spread[at++]} * double{keys[i * kExpectedLanes]} * double{keys[j * kExpectedLanes]};
      }
    }
    EXPECT_NEAR(first[0], plain, 1e-3 * (1.0 + std::abs(plain))) << n_dims;
  }
}

}  // namespace
}  // namespace ebb::query_forecast_test
