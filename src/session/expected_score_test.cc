// What queries to come are expected to look at is what the definition says (policy/originals_keys_twin.h), to the score of the policy:
// random queries, keys and values, in blocks of one token and of several.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "base/to_size.h"
#include "model/expected_attention.h"
#include "policy/originals_keys_twin.h"
#include "policy/policy_test.h"

namespace ebb {
namespace {

using originals::Heads;
using originals::Row;
using originals::Rows;

constexpr std::size_t kKvHeads = 2;
constexpr std::size_t kGroup = 3;
constexpr std::size_t kDims = 6;
constexpr std::size_t kValueDims = 5;

std::vector<float> to_floats(const Row& row) { return {row.begin(), row.end()}; }

Heads random_heads(std::mt19937& random, std::size_t n_heads, std::size_t n_rows, std::size_t n_dims) {
  std::normal_distribution<float> normal(0.2F, 1.0F);
  Heads heads(n_heads, Rows(n_rows, Row(n_dims)));
  for (Rows& head : heads) {
    for (std::size_t t = 0; t < n_rows; ++t) {
      for (double& x : head[t]) x = static_cast<double>(normal(random));
      // Copies, so that there are ties.
      if (t > 0 && random() % 4 == 0) head[t] = head[random() % t];
    }
  }
  return heads;
}

class ExpectedScore : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  ExpectedScore() {
    RopeFrequencies frequencies{.kind = RopeKind::kNeoX, .per_anchor = {}};
    for (std::size_t i = 0; i < kDims / 2; ++i) {
      frequencies.per_anchor.push_back(std::pow(10000.0, -2.0 * static_cast<double>(i) / double{kDims}));
    }
    forecaster_ =
        std::make_unique<Forecaster>(QuerySetup{.shape = {.n_layers = 1, .n_heads = kKvHeads * kGroup, .n_dims = kDims},
                                                .n_kv_heads = kKvHeads,
                                                .scale = 1.0 / std::sqrt(double{kDims}),
                                                .layers = {{.frequencies = frequencies}}});
  }

  QueryMoments note(const Heads& queries) {
    QueryMoments moments = forecaster_->make_moments(Position(static_cast<std::int32_t>(original_.n_sinks)));
    std::vector<float> rows;
    for (std::size_t row = 0; row < queries[0].size(); ++row) {
      for (const Rows& head : queries) rows.insert(rows.end(), head[row].begin(), head[row].end());
    }
    moments.add(LayerIndex(0),
                {.q = rows.data(),
                 .row_stride = queries.size() * kDims,
                 .head_stride = kDims,
                 .first = Position(0),
                 .n_rows = static_cast<std::int32_t>(queries[0].size())},
                0, 1);
    return moments;
  }

  // The columns of a head whose blocks have `grain` tokens; without the sinks, which are of no block's mean.
  ScopeEvidence expect(const QueryMoments& moments, std::size_t head, std::size_t grain) {
    ExpectedAttention expected(
        forecaster_->forecast(moments, head,
                              {.first = Position(static_cast<std::int32_t>(original_.next_position)),
                               .n_anchors = static_cast<std::int32_t>(original_.n_future)}));
    for (std::size_t begin = 0; begin < n_tokens_; begin += grain) {
      std::vector<float> keys;
      std::vector<float> values;
      const std::size_t first = std::max(begin, original_.n_sinks);
      const std::size_t end = std::min(n_tokens_, begin + grain);
      for (std::size_t t = first; t < end; ++t) {
        for (const float x : to_floats(keys_[head][t])) keys.push_back(x);
        for (const float x : to_floats(values_[head][t])) values.push_back(x);
      }
      expected.add({.n_tokens = end - std::min(end, first), .keys = keys, .values = values});
    }
    ScopeEvidence scope;
    for (const ExpectedBlock& block : expected.finish()) {
      scope.rows.push_back({});
      scope.expected.push_back(block.attention);
      scope.expected_value.push_back(block.weighted_value);
      scope.value_length.push_back(block.value_length);
    }
    return scope;
  }

  std::mt19937 random_{GetParam()};
  std::size_t n_tokens_ = 20 + random_() % 60;
  originals::ExpectedAttention original_{.n_sinks = random_() % 5,
                                         .n_future = 1 + random_() % 600,
                                         .next_position = n_tokens_ + random_() % 300,
                                         .epsilon = random_() % 2 == 0 ? 0.0 : 0.02};
  Heads queries_ = random_heads(random_, kKvHeads* kGroup, n_tokens_, kDims);
  Heads keys_ = random_heads(random_, kKvHeads, n_tokens_, kDims);
  Heads values_ = random_heads(random_, kKvHeads, n_tokens_, kValueDims);
  std::unique_ptr<Forecaster> forecaster_;
};

TEST_P(ExpectedScore, of_blocks_of_one_token_is_that_of_the_definition) {
  const Rows expected = originals::expected_attention_scores(queries_, keys_, values_, original_);
  const QueryMoments moments = note(queries_);
  const auto policy = policy_test::policy(fmt::format("expected_attention:epsilon={}", original_.epsilon));
  for (std::size_t head = 0; head < kKvHeads; ++head) {
    const std::vector<double> scores = policy->score({}, expect(moments, head, 1));
    double most = 0.0;
    for (std::size_t t = original_.n_sinks; t < n_tokens_; ++t) most = std::max(most, expected[head][t]);
    for (std::size_t t = original_.n_sinks; t < n_tokens_; ++t) {
      // Logits are floats.
      EXPECT_NEAR(scores[t], expected[head][t], 1e-5 * most) << head << " " << t;
      for (std::size_t u = original_.n_sinks; u < t; ++u) {
        if (keys_[head][u] != keys_[head][t] || values_[head][u] != values_[head][t]) continue;
        EXPECT_EQ(scores[u], scores[t]) << "what ties in the original ties here";
      }
    }
  }
}

TEST_P(ExpectedScore, of_a_block_is_the_mean_of_its_tokens) {
  const Rows expected = originals::expected_attention_scores(queries_, keys_, values_, original_);
  const QueryMoments moments = note(queries_);
  const std::size_t grain = 2 + random_() % 20;
  const auto policy = policy_test::policy(fmt::format("expected_attention:epsilon={}", original_.epsilon));
  for (std::size_t head = 0; head < kKvHeads; ++head) {
    const std::vector<double> scores = policy->score({}, expect(moments, head, grain));
    for (std::size_t b = 0; b < scores.size(); ++b) {
      double sum = 0.0;
      double n = 0.0;
      for (std::size_t t = std::max(b * grain, original_.n_sinks); t < std::min(n_tokens_, (b + 1) * grain); ++t) {
        sum += expected[head][t];
        n += 1.0;
      }
      EXPECT_NEAR(scores[b], n == 0.0 ? 0.0 : sum / n, 1e-5 * std::max(sum, 1.0)) << head << " " << b;
    }
  }
}

TEST_P(ExpectedScore, of_queries_that_are_far_apart_stays_finite) {
  Heads far = queries_;
  for (Rows& head : far) {
    for (Row& row : head) {
      for (double& x : row) x *= 1e6;
    }
  }
  const ScopeEvidence scope = expect(note(far), 0, 1);
  double sum = 0.0;
  for (const double attention : scope.expected) {
    ASSERT_TRUE(std::isfinite(attention));
    sum += attention;
  }
  EXPECT_NEAR(sum, 1.0, 1e-9) << "few keys have all of it";
}

INSTANTIATE_TEST_SUITE_P(Seeds, ExpectedScore, ::testing::Range(1U, 41U));

TEST(ExpectedAttentionPolicy, weighs_by_values_and_adds_epsilon_as_it_is_told) {
  ScopeEvidence scope{.expected = {0.5, 0.25}, .expected_value = {1.0, 2.0}, .value_length = {2.0, 8.0}};
  const auto scores = [&](const char* spec) { return policy_test::policy(spec)->score({}, scope); };
  EXPECT_EQ(scores("expected_attention"), (std::vector<double>{1.0, 2.0}));
  EXPECT_EQ(scores("expected_attention:epsilon=0.5"), (std::vector<double>{2.0, 6.0}));
  EXPECT_EQ(scores("expected_attention:values=0"), (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(scores("expected_attention:values=0,epsilon=0.5"), (std::vector<double>{1.0, 0.75}));
  EXPECT_EQ(policy_test::policy("expected_attention:future=64")->asks().expected, 64);
  EXPECT_FALSE(policy_test::policy("expected_attention:covariance=0")->asks().expected_spread);
}

}  // namespace
}  // namespace ebb
