// Policies that look at what frames hold choose, at the grain of single tokens, what the originals' definitions choose
// (policy/originals_twin.h): from random keys, values and weights with many ties.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "policy/choose.h"
#include "policy/originals_attention_twin.h"
#include "policy/originals_keys_twin.h"
#include "policy/policy_test.h"

namespace ebb::against_originals_values_test {
namespace {

using originals::Heads;
using originals::Row;
using originals::Rows;
using originals::Tokens;

constexpr std::size_t kKvHeads = 2;
constexpr std::size_t kGroup = 2;
constexpr std::size_t kDims = 4;
constexpr std::size_t kWindow = 8;

// Small whole numbers, which floats hold and sums keep exactly, so that what ties in the original ties here.
Heads random_rows(std::mt19937& random, std::size_t n_heads, std::size_t n_rows) {
  Heads heads(n_heads, Rows(n_rows, Row(kDims)));
  for (Rows& head : heads) {
    for (Row& row : head) {
      for (double& x : row) x = static_cast<double>(random() % 5) - 2.0;
    }
  }
  return heads;
}

// Rows with copies of earlier ones among them.
Rows random_rows_with_copies(std::mt19937& random, std::size_t n_rows) {
  std::normal_distribution<double> normal;
  Rows rows;
  for (std::size_t t = 0; t < n_rows; ++t) {
    rows.emplace_back(kDims);
    for (double& x : rows.back()) x = normal(random);
    if (t > 0 && random() % 3 == 0) rows.back() = rows[random() % t];
  }
  return rows;
}

// In eighths, of the last queries of a prompt.
Heads random_weights(std::mt19937& random, std::size_t n_heads, std::size_t n_queries, std::size_t n_tokens) {
  Heads weights(n_heads, Rows(n_queries, Row(n_tokens, 0.0)));
  for (Rows& head : weights) {
    for (std::size_t q = 0; q < n_queries; ++q) {
      for (std::size_t j = 0; j + n_queries <= n_tokens + q; ++j) head[q][j] = static_cast<double>(random() % 9) / 8.0;
    }
  }
  return weights;
}

// Blocks of one token in n_layers * kKvHeads heads, the last n_protected held.
Evidence tokens(std::size_t n, std::size_t n_layers, std::size_t n_protected) {
  Evidence evidence =
      policy_test::blocks(static_cast<std::int32_t>(n), static_cast<std::int32_t>(n_layers * kKvHeads), 1);
  evidence.n_layers = static_cast<std::int32_t>(n_layers);
  for (std::size_t j = n - n_protected; j < n; ++j) evidence.blocks[j].hold = Hold::kProtected;
  for (ScopeEvidence& scope : evidence.scopes) scope.is_read.assign(n, true);
  return evidence;
}

void put_rows(const Rows& rows, ChannelColumns& columns) {
  columns.n_dims = kDims;
  for (const Row& row : rows) columns.mean.insert(columns.mean.end(), row.begin(), row.end());
  columns.least = columns.mean;
  columns.greatest = columns.mean;
}

// What stays in each head of a budget of frames for all.
std::vector<Tokens> keep(std::string_view spec, const Evidence& evidence, std::size_t budget) {
  const std::size_t n = evidence.blocks.size();
  const auto n_leave = static_cast<std::int32_t>(n * evidence.scopes.size() - budget);
  std::vector<std::vector<bool>> leaves(evidence.scopes.size(), std::vector<bool>(n, false));
  for (const Victim& victim : choose_victims(*policy_test::policy(spec), evidence, n_leave, n_leave)) {
    leaves[static_cast<std::size_t>(victim.scope)][victim.block.index()] = true;
  }
  std::vector<Tokens> kept(leaves.size());
  for (std::size_t s = 0; s < kept.size(); ++s) {
    for (std::size_t j = 0; j < n; ++j) {
      if (!leaves[s][j]) kept[s].push_back(j);
    }
  }
  return kept;
}

class AgainstOriginalsOfValues : public ::testing::TestWithParam<unsigned> {
 protected:
  // What the window's queries gave each token at most, summed over the query heads of KV head `head`; and |v W_O|.
  void put_defensive(const Heads& weights, const Heads& values, const Heads& output, std::size_t head,
                     ScopeEvidence& scope) const {
    for (std::size_t j = 0; j < n_tokens_; ++j) {
      double most = 0.0;
      double length = 0.0;
      for (const std::size_t q : {0, 1, 2, 3, 4, 5, 6, 7}) {
        double mass = 0.0;
        for (std::size_t g = 0; g < kGroup; ++g) mass += weights[head * kGroup + g][q][j];
        most = std::max(most, mass);
      }
      for (std::size_t g = 0; g < kGroup; ++g) {
        Row product(kDims, 0.0);
        for (std::size_t i = 0; i < kDims; ++i) {
          for (std::size_t e = 0; e < kDims; ++e) product[e] += values[head][j][i] * output[head * kGroup + g][i][e];
        }
        length += originals::norm(product) / static_cast<double>(kGroup);
      }
      scope.window_max.push_back(most);
      scope.output_length.push_back(length);
    }
  }

  std::mt19937 random_{GetParam()};
  std::size_t n_tokens_ = 24 + random_() % 40;
};

TEST_P(AgainstOriginalsOfValues, defensivekv_of_a_layer_and_of_all_layers) {
  constexpr std::size_t kLayers = 3;
  Evidence evidence = tokens(n_tokens_, kLayers, kWindow);
  Rows all;
  std::vector<Rows> by_layer;
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    const Heads weights = random_weights(random_, kKvHeads * kGroup, kWindow, n_tokens_);
    const Heads values = random_rows(random_, kKvHeads, n_tokens_);
    const Heads output = random_rows(random_, kKvHeads * kGroup, kDims);
    by_layer.push_back(originals::defensivekv_scores(weights, values, output, kWindow));
    all.insert(all.end(), by_layer.back().begin(), by_layer.back().end());
    for (std::size_t h = 0; h < kKvHeads; ++h) {
      put_defensive(weights, values, output, h, evidence.scopes[layer * kKvHeads + h]);
    }
  }
  for (const std::size_t budget : {kWindow + 3, n_tokens_ / 2}) {
    const std::vector<Tokens> kept = keep("defensivekv:window=8", evidence, budget * evidence.scopes.size());
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      const std::vector<Tokens> of_layer(kept.begin() + static_cast<std::ptrdiff_t>(layer * kKvHeads),
                                         kept.begin() + static_cast<std::ptrdiff_t>((layer + 1) * kKvHeads));
      EXPECT_EQ(of_layer, originals::keep_highest_of_all(by_layer[layer], budget * kKvHeads)) << layer;
    }
    EXPECT_EQ(keep("layer_defensivekv:window=8,floor=0", evidence, budget * evidence.scopes.size()),
              originals::keep_highest_of_all(all, budget * evidence.scopes.size()));
  }
}

TEST_P(AgainstOriginalsOfValues, dropkv_of_one_query) {
  Evidence evidence = tokens(n_tokens_, 1, 0);
  const Heads values = random_rows(random_, kKvHeads, n_tokens_);
  Heads weights(kKvHeads, Rows(1, Row(n_tokens_, 0.0)));
  for (std::size_t h = 0; h < kKvHeads; ++h) {
    for (int i = 0; i < 64; ++i) weights[h][0][random_() % n_tokens_] += 1.0 / 64.0;
    evidence.scopes[h].window_mean = weights[h][0];
    put_rows(values[h], evidence.scopes[h].values);
  }
  const Rows scores = originals::dropkv_scores(weights, values);
  for (const std::size_t budget : {3UL, n_tokens_ / 3, n_tokens_ / 2}) {
    EXPECT_EQ(keep("dropkv:window=1", evidence, budget * kKvHeads), originals::keep_highest(scores, budget));
  }
}

TEST_P(AgainstOriginalsOfValues, lagkv) {
  const std::size_t lag = 3 + random_() % 6;
  const std::size_t n_sinks = random_() % 5;
  const originals::LagKv original{.n_sinks = n_sinks, .lag = lag, .rho = 0.5};
  Evidence evidence = tokens(n_tokens_, 1, 0);
  const Heads keys = random_rows(random_, kKvHeads, n_tokens_);
  const Heads values = random_rows(random_, kKvHeads, n_tokens_);
  for (std::size_t h = 0; h < kKvHeads; ++h) {
    put_rows(keys[h], evidence.scopes[h].keys);
    put_rows(values[h], evidence.scopes[h].values);
  }
  const std::vector<Tokens> expected = originals::lagkv_kept(originals::lagkv_scores(keys, values, original), original);
  const std::string spec = fmt::format("lagkv:lag={},sinks={},rho=0.5", lag, n_sinks);
  EXPECT_EQ(keep(spec, evidence, expected[0].size() * kKvHeads), expected) << spec;
}

TEST_P(AgainstOriginalsOfValues, rkv_of_one_query) {
  const Heads keys = {random_rows_with_copies(random_, n_tokens_)};
  const Heads queries = {random_rows_with_copies(random_, 1)};
  Evidence evidence = policy_test::blocks(static_cast<std::int32_t>(n_tokens_), 1, 1);
  evidence.blocks.back().hold = Hold::kProtected;
  ScopeEvidence& scope = evidence.scopes.front();
  scope.is_read.assign(n_tokens_, true);
  scope.n_key_dims = kDims;
  Row logits;
  for (const Row& key : keys[0]) {
    logits.push_back(originals::dot(queries[0][0], key) / 2.0);  // sqrt(kDims)
    for (const double x : key) scope.key_direction.push_back(static_cast<float>(x / originals::norm(key)));
  }
  scope.window_mean = originals::softmax(logits);
  for (const double lambda : {0.07, 0.5}) {
    const Row expected = originals::rkv_scores(queries, keys, {.window = 1, .kernel = 7, .lambda = lambda})[0];
    const auto policy = policy_test::policy(fmt::format("rkv:window=1,lambda={}", lambda));
    const std::vector<double> ours = policy->score(evidence, scope);
    // Directions are floats: scores agree as far as those do. The last token is the window's, which always stays.
    for (std::size_t j = 0; j + 1 < n_tokens_; ++j) EXPECT_NEAR(ours[j], expected[j], 1e-7);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AgainstOriginalsOfValues, ::testing::Range(1U, 41U));

// --- what the originals do not say ---

TEST(LagKv, takes_as_much_of_each_partition_however_often_is_chosen) {
  Evidence evidence = tokens(5 * 8, 1, 0);
  std::mt19937 random(3);
  for (ScopeEvidence& scope : evidence.scopes) {
    put_rows(random_rows(random, 1, 40)[0], scope.keys);
    put_rows(random_rows(random, 1, 40)[0], scope.values);
  }
  const auto policy = policy_test::policy("lagkv:lag=8,sinks=0");
  ScopeEvidence left = evidence.scopes[0];
  // The lowest leaves, one by one, with what is known of it.
  for (int n = 0; n < 16; ++n) {
    const std::vector<double> scores = policy->score(evidence, left);
    const auto at = static_cast<std::size_t>(std::ranges::min_element(scores) - scores.begin());
    ScopeEvidence next{.keys = {.n_dims = kDims}, .values = {.n_dims = kDims}};
    for (std::size_t i = 0; i < left.rows.size(); ++i) {
      if (i == at) continue;
      next.rows.push_back(left.rows[i]);
      next.is_read.push_back(true);
      for (auto [from, to] : {std::pair(&left.keys, &next.keys), std::pair(&left.values, &next.values)}) {
        const auto row = from->of(from->mean, i);
        for (auto* column : {&to->least, &to->greatest, &to->mean})
          column->insert(column->end(), row.begin(), row.end());
      }
    }
    left = std::move(next);
  }
  std::vector<int> n_left(5, 0);
  for (const ScopeRow& row : left.rows) ++n_left[static_cast<std::size_t>(row.block) / 8];
  EXPECT_EQ(n_left, (std::vector<int>{4, 4, 4, 4, 8}));
}

TEST(LagKv, measures_blocks_by_their_means_within_the_ranges_of_all_tokens_behind) {
  // Two partitions of two blocks; nothing is behind the second.
  Evidence evidence = policy_test::blocks(4, 1, 16);
  ScopeEvidence& scope = evidence.scopes[0];
  scope.is_read.assign(4, true);
  scope.keys = {.n_dims = 2,
                .least = {0, 0, 0, 0, -1, 0, 0, 0},
                .greatest = {9, 9, 9, 9, 1, 1, 3, 1},
                .mean = {4, 1, 4, 2, 0, 0, 0, 0}};
  scope.values = {.n_dims = 2,
                  .least = std::vector<float>(8, 0.0F),
                  .greatest = std::vector<float>(8, 0.0F),
                  .mean = std::vector<float>(8, 0.0F)};
  // Within -1 to 3 and 0 to 1: z is 1.25 and 1, or 1.25 and 2, which is told apart more.
  EXPECT_EQ(policy_test::policy("lagkv:lag=32,sinks=0")->score(evidence, scope),
            (std::vector<double>{0.0, 0.5, 1.0, 1.0}));
  EXPECT_EQ(policy_test::policy("lagkv:lag=32,sinks=1")->score(evidence, scope).front(), 2.0);
  scope.is_read[1] = false;
  EXPECT_EQ(policy_test::policy("lagkv:lag=32,sinks=0")->score(evidence, scope),
            (std::vector<double>{0.5, 1.0, 1.0, 1.0}))
      << "what was not read does not compete";
}

TEST(RKv, compares_no_more_blocks_than_it_may_and_keeps_the_others_longer) {
  Evidence evidence = policy_test::blocks(6, 1, 16);
  evidence.end = Position(1000);
  ScopeEvidence& scope = evidence.scopes[0];
  scope.is_read.assign(6, true);
  scope.n_key_dims = 1;
  scope.key_direction.assign(6, 1.0F);
  scope.window_mean = {1, 6, 3, 5, 2, 4};
  const std::vector<double> scores = policy_test::policy("rkv:window=1,most=3,lambda=0.5")->score(evidence, scope);
  const double most = std::max({scores[0], scores[2], scores[4]});
  for (const std::size_t ahead : {1, 3, 5}) EXPECT_GT(scores[ahead], most);
  EXPECT_GT(scores[1], scores[3]);
  EXPECT_GT(scores[3], scores[5]);
}

TEST(DropKv, costs_nothing_what_nobody_looks_at_and_most_what_all_look_at) {
  Evidence evidence = policy_test::blocks(3);
  ScopeEvidence& scope = evidence.scopes[0];
  scope.is_read = {true, true, false};
  scope.values.n_dims = 1;
  scope.values.mean = {1.0F, 3.0F, 0.0F};
  scope.window_mean = {2.0, 1.0, 1.0};
  // Of the two that are known the output is 5/3, and their shares of all mass are 1/2 and 1/4.
  const std::vector<double> scores = policy_test::policy("dropkv")->score(evidence, scope);
  EXPECT_NEAR(scores[0], 4.0 / 9.0, 1e-12);
  EXPECT_NEAR(scores[1], 16.0 / 9.0 / 9.0, 1e-12);
  EXPECT_EQ(scores[2], 0.0);
  scope.window_mean = {0.0, 4.0, 0.0};
  EXPECT_GT(policy_test::policy("dropkv")->score(evidence, scope)[1], 1e300);
}

}  // namespace
}  // namespace ebb::against_originals_values_test
