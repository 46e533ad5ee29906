#include "model/score_kernels.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/to_size.h"

namespace ebb {
namespace {

// All that this processor runs, the plain one first.
std::vector<std::pair<std::string, const ScoreKernels*>> kernel_sets() {
  std::vector<std::pair<std::string, const ScoreKernels*>> sets = {{"portable", &kPortableScoreKernels}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) sets.emplace_back("avx2", &kAvx2ScoreKernels);
  if (__builtin_cpu_supports("avx512bw") != 0) sets.emplace_back("avx512", &kAvx512ScoreKernels);
  if (__builtin_cpu_supports("avx512vnni") != 0) sets.emplace_back("avx512vnni", &kAvx512VnniScoreKernels);
#endif
  return sets;
}

constexpr float kHuge = 1e30F;

// What every set computes of the same random numbers, one after the other.
struct Answers {
  std::vector<float> base, unit, logits, most, sums, row_most, behind, weights, totals, around;
  std::vector<std::int32_t> row_quads, key_quads;
  std::vector<unsigned char> levels;
  BoxWidths widths;
};

class ScoreKernelsTest : public ::testing::Test {
 protected:
  void draw(std::size_t n_rows, std::size_t n_dims, std::size_t n_slots, std::size_t n_keys, unsigned seed) {
    n_rows_ = n_rows;
    n_dims_ = n_dims;
    n_slots_ = n_slots;
    n_keys_ = n_keys;
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& x, std::size_t n) {
      x.resize(n);
      for (float& y : x) y = normal(random);
    };
    fill(queries_, n_dims * n_rows);
    fill(own_, n_dims);
    fill(least_, n_dims);
    fill(other_, n_dims);
    own_step_.resize(n_dims);
    step_.resize(n_dims);
    weights_.resize(n_dims);
    for (std::size_t d = 0; d < n_dims; ++d) {
      own_step_[d] = std::abs(normal(random)) / 3.0F;
      // The box that levels are of has the block's in it.
      least_[d] = own_[d] - std::abs(least_[d]);
      step_[d] = (own_[d] + 3.0F * own_step_[d] + 0.3F - least_[d]) / 127.0F;
      weights_[d] = std::abs(normal(random));
    }
    sketch_.resize(n_dims * n_slots / 4);
    for (unsigned char& x : sketch_) x = static_cast<unsigned char>(random());
  }

  [[nodiscard]] Answers answers(const ScoreKernels& kernels) const {
    Answers out;
    std::vector<float> per_step(n_dims_), greatest(n_dims_);
    for (std::size_t d = 0; d < n_dims_; ++d) {
      per_step[d] = 1.0F / step_[d];
      greatest[d] = own_[d] + 3.0F * own_step_[d];
    }
    out.around.resize(2 * n_dims_);
    out.widths = kernels.join_boxes(weights_.data(), {.least = own_.data(), .greatest = greatest.data()},
                                    {.least = other_.data(), .greatest = other_.data()}, n_dims_,
                                    {.least = out.around.data(), .greatest = out.around.data() + n_dims_});
    out.base.resize(n_rows_);
    out.unit.resize(n_rows_);
    out.row_quads.resize(n_dims_ / 4 * n_rows_);
    const ByteRows rows{.quads = out.row_quads.data(), .base = out.base.data(), .unit = out.unit.data()};
    kernels.weigh_steps(queries_.data(), n_rows_, n_dims_, least_.data(), step_.data(), rows);
    out.levels.resize(5 * n_dims_);
    kernels.find_code_levels(own_.data(), own_step_.data(), least_.data(), per_step.data(), n_dims_, out.levels.data());
    kernels.find_levels(own_.data(), least_.data(), per_step.data(), n_dims_, out.levels.data() + 4 * n_dims_);
    out.key_quads.resize(n_dims_ / 4 * n_slots_);
    kernels.spread_codes(sketch_.data(), out.levels.data(), n_dims_, n_slots_, out.key_quads.data());
    const ByteKeys keys{.quads = out.key_quads.data(), .key_stride = 1, .quad_stride = n_slots_, .n_keys = n_slots_};
    out.logits.resize(n_slots_ * n_rows_);
    kernels.multiply_bytes(rows, n_rows_, n_dims_, keys, out.logits.data());
    std::vector<float> scratch(n_slots_ * 2 * kScoreLanes);
    out.most.resize(n_rows_);
    out.sums.resize(n_rows_);
    kernels.weigh_keys(rows, n_rows_, n_dims_, keys, n_keys_, scratch.data(), out.most.data(), out.sums.data());
    out.row_most.assign(n_rows_, -kHuge);
    kernels.find_most(out.logits.data(), n_keys_, n_rows_, out.row_most.data());
    out.behind.resize(n_keys_);
    kernels.find_behind(out.logits.data(), out.row_most.data(), n_keys_, n_rows_, out.behind.data());
    out.weights.resize(out.logits.size());
    out.totals.resize(n_rows_);
    const std::vector<float> ones(out.logits.size(), 1.0F);
    kernels.weigh(out.logits.data(), ones.data(), n_keys_, n_rows_, out.weights.data(), out.totals.data());
    return out;
  }

  // The level that a key has in a channel.
  [[nodiscard]] unsigned level(const Answers& of, std::size_t key, std::size_t d) const {
    const std::size_t quarter = n_slots_ / 4;
    const unsigned code = (sketch_[d * quarter + key % quarter] >> (2 * (key / quarter))) & 3U;
    return of.levels[4 * d + code];
  }

  std::size_t n_rows_ = 0, n_dims_ = 0, n_slots_ = 0, n_keys_ = 0;
  std::vector<float> queries_, own_, own_step_, least_, step_, other_, weights_;
  std::vector<unsigned char> sketch_;
};

TEST_F(ScoreKernelsTest, every_set_gives_the_same_bits) {
  for (const std::size_t n_rows : {8U, 16U, 24U, 40U, 128U}) {
    for (const std::size_t n_slots : {16U, 48U, 64U, 128U, 256U}) {
      for (const std::size_t n_dims : {16U, 64U, 80U}) {
        draw(n_rows, n_dims, n_slots, n_slots - 3, static_cast<unsigned>(n_rows + n_slots));
        const Answers wanted = answers(kPortableScoreKernels);
        for (const auto& [name, kernels] : kernel_sets()) {
          const Answers got = answers(*kernels);
          EXPECT_EQ(got.base, wanted.base) << name;
          EXPECT_EQ(got.unit, wanted.unit) << name;
          EXPECT_EQ(got.row_quads, wanted.row_quads) << name;
          EXPECT_EQ(got.levels, wanted.levels) << name;
          EXPECT_EQ(got.key_quads, wanted.key_quads) << name;
          EXPECT_EQ(got.logits, wanted.logits) << name;
          EXPECT_EQ(got.most, wanted.most) << name;
          EXPECT_EQ(got.sums, wanted.sums) << name;
          EXPECT_EQ(got.row_most, wanted.row_most) << name;
          EXPECT_EQ(got.behind, wanted.behind) << name;
          EXPECT_EQ(got.weights, wanted.weights) << name;
          EXPECT_EQ(got.totals, wanted.totals) << name;
          EXPECT_EQ(got.around, wanted.around) << name;
          EXPECT_EQ(got.widths.own, wanted.widths.own) << name;
          EXPECT_EQ(got.widths.around, wanted.widths.around) << name;
        }
      }
    }
  }
}

TEST_F(ScoreKernelsTest, logits_of_bytes_are_those_of_numbers_but_for_what_bytes_lose) {
  draw(24, 64, 64, 61, 5);
  const Answers got = answers(kPortableScoreKernels);
  for (std::size_t row = 0; row < n_rows_; ++row) {
    double most = -kHuge, sum = 0.0;
    for (std::size_t key = 0; key < n_keys_; ++key) {
      double exact = 0.0, of_levels = 0.0;
      for (std::size_t d = 0; d < n_dims_; ++d) {
        const std::size_t quarter = n_slots_ / 4;
        const unsigned code = (sketch_[d * quarter + key % quarter] >> (2 * (key / quarter))) & 3U;
        const double q = double{queries_[d * n_rows_ + row]};
        exact += q * (double{own_[d]} + code * double{own_step_[d]});
        of_levels += q * (double{least_[d]} + double{step_[d]} * level(got, key, d));
      }
      const double logit = double{got.logits[key * n_rows_ + row]};
      // A product is off by half a unit times its level, and the signs of 64 differ.
      EXPECT_NEAR(of_levels, logit, double{got.unit[row]} * 16.0 * std::sqrt(64.0 * static_cast<double>(n_dims_)));
      EXPECT_NEAR(exact, logit, 0.5);
      most = std::max(most, logit);
    }
    EXPECT_EQ(most, double{got.most[row]});
    EXPECT_EQ(got.most[row], got.row_most[row]);
    for (std::size_t key = 0; key < n_keys_; ++key) sum += std::exp(double{got.logits[key * n_rows_ + row]} - most);
    EXPECT_NEAR(got.sums[row], sum, 2e-4 * sum);
    EXPECT_NEAR(got.totals[row], sum, 2e-4 * sum);
  }
  for (std::size_t key = 0; key < n_keys_; ++key) {
    float least = kHuge;
    for (std::size_t row = 0; row < n_rows_; ++row) {
      least = std::min(least, got.row_most[row] - got.logits[key * n_rows_ + row]);
    }
    EXPECT_EQ(got.behind[key], least);
  }
}

TEST_F(ScoreKernelsTest, the_box_around_two_holds_both) {
  draw(8, 32, 16, 16, 9);
  const Answers got = answers(kPortableScoreKernels);
  double own = 0.0, around = 0.0;
  for (std::size_t d = 0; d < n_dims_; ++d) {
    const float greatest = own_[d] + 3.0F * own_step_[d];
    EXPECT_EQ(got.around[d], std::min(own_[d], other_[d]));
    EXPECT_EQ(got.around[n_dims_ + d], std::max(greatest, other_[d]));
    own += double{weights_[d]} * double{greatest - own_[d]};
    around += double{weights_[d]} * (double{got.around[n_dims_ + d]} - double{got.around[d]});
  }
  EXPECT_NEAR(got.widths.own, own, 1e-4);
  EXPECT_NEAR(got.widths.around, around, 1e-4);
}

}  // namespace
}  // namespace ebb
