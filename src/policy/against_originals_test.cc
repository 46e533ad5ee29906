// Policies at the grain of single tokens choose what the originals' definitions choose (policy/originals_twin.h), from random
// attention with many ties: noted step by step, in a prompt of one or several chunks and while decoding.
#include <random>

#include <gtest/gtest.h>

#include "policy/attention_notes.h"
#include "policy/choose.h"
#include "policy/originals_attention_twin.h"
#include "policy/originals_budgets_twin.h"
#include "policy/originals_keys_twin.h"
#include "policy/policy_test.h"

namespace ebb::against_originals_test {
namespace {

using originals::Heads;
using originals::Row;
using originals::Rows;
using originals::Tokens;

constexpr std::size_t kKvHeads = 2;
// The original pools each query head before it takes their mean; here the mean is what is known. They are the same where a KV
// head has one query head, or nothing is pooled.
constexpr std::size_t kGroup = 2;
constexpr std::size_t kNoGroup = 1;

// Weights are eighths, which sums and means keep exactly, so that what ties in the original ties here.
Heads random_weights(std::mt19937& random, std::size_t n_tokens, std::size_t group) {
  Heads weights(kKvHeads * group, Rows(n_tokens, Row(n_tokens, 0.0)));
  for (Rows& head : weights) {
    for (std::size_t q = 0; q < n_tokens; ++q) {
      for (std::size_t j = 0; j <= q; ++j) head[q][j] = static_cast<double>(random() % 9) / 8.0;
    }
  }
  return weights;
}

// One layer's tokens in blocks of one, as a session would note and choose them.
class Layer {
 public:
  Layer(std::string_view spec, const Heads& weights) : policy_(policy_test::policy(spec)), weights_(weights) {
    const Ask ask = policy_->asks();
    notes_ = std::make_unique<AttentionNotes>(kKvHeads, ask);
    evidence_ = policy_test::blocks(static_cast<std::int32_t>(n_tokens()), ask.scope == Scope::kHead ? kKvHeads : 1, 1);
  }

  // Queries up to `end`, as one step.
  void observe(std::size_t end) {
    const std::int32_t n_rows = notes_->n_observed(static_cast<std::int32_t>(end - n_seen_), {});
    const std::size_t begin = end - static_cast<std::size_t>(n_rows);
    const std::int32_t n_window = std::min(n_rows, policy_->asks().window);
    notes_->begin_step(
        {.observed = {Position(static_cast<std::int32_t>(begin)), Position(static_cast<std::int32_t>(end))},
         .n_window = n_window},
        1);
    std::vector<BlockIndex> blocks;
    for (std::size_t j = 0; j < end; ++j) blocks.emplace_back(static_cast<std::int32_t>(j));
    const std::size_t group = weights_.size() / kKvHeads;
    for (std::size_t head = 0; head < kKvHeads; ++head) {
      std::vector<float> sum(end, 0.0F);
      std::vector<float> window_sum(end, 0.0F);
      std::vector<float> window_max(end, 0.0F);
      std::vector<float> last(end, 0.0F);
      for (std::size_t q = begin; q < end; ++q) {
        for (std::size_t j = 0; j < end; ++j) {
          float mass = 0.0F;
          for (std::size_t g = 0; g < group; ++g) mass += static_cast<float>(weights_[head * group + g][q][j]);
          sum[j] += mass;
          last[j] = mass;
          if (q < end - static_cast<std::size_t>(n_window)) continue;
          window_sum[j] += mass;
          window_max[j] = std::max(window_max[j], mass);
        }
      }
      notes_->add(head,
                  {.blocks = blocks, .sum = sum, .window_sum = window_sum, .window_max = window_max, .last = last});
    }
    n_seen_ = end;
  }

  // What stays of a budget of tokens for each head; the last n_protected are held.
  std::vector<Tokens> keep(std::size_t budget, std::size_t n_protected) {
    const Ask ask = policy_->asks();
    std::vector<BlockIndex> blocks;
    for (BlockEvidence& block : evidence_.blocks) {
      blocks.push_back(block.block);
      if (block.block.index() + n_protected >= n_tokens()) block.hold = Hold::kProtected;
    }
    const std::size_t n_in_scope = kKvHeads / evidence_.scopes.size();
    for (ScopeEvidence& scope : evidence_.scopes) {
      for (ScopeRow& row : scope.rows) row.n_frames = static_cast<std::int32_t>(n_in_scope);
      notes_->fill(ask, static_cast<std::size_t>(scope.index) * n_in_scope, n_in_scope, blocks, scope);
    }
    const auto n_leave = static_cast<std::int32_t>((n_tokens() - budget) * kKvHeads);
    std::vector<std::vector<bool>> leaves(evidence_.scopes.size(), std::vector<bool>(n_tokens(), false));
    for (const Victim& victim : choose_victims(*policy_, evidence_, n_leave, n_leave)) {
      leaves[static_cast<std::size_t>(victim.scope)][victim.block.index()] = true;
    }
    std::vector<Tokens> kept(evidence_.scopes.size());
    for (std::size_t s = 0; s < kept.size(); ++s) {
      for (std::size_t j = 0; j < n_tokens(); ++j) {
        if (!leaves[s][j]) kept[s].push_back(j);
      }
    }
    return kept;
  }

 private:
  [[nodiscard]] std::size_t n_tokens() const { return weights_.front().size(); }

  std::unique_ptr<Policy> policy_;
  const Heads& weights_;
  std::unique_ptr<AttentionNotes> notes_;
  Evidence evidence_;
  std::size_t n_seen_ = 0;
};

// In chunks, then one by one.
void observe_all(Layer& layer, std::size_t n_tokens, std::size_t n_chunk, std::size_t n_decoded) {
  std::size_t end = 0;
  while (end < n_tokens - n_decoded) layer.observe(end = std::min(n_tokens - n_decoded, end + n_chunk));
  while (end < n_tokens) layer.observe(++end);
}

class AgainstOriginals : public ::testing::TestWithParam<unsigned> {
 protected:
  std::mt19937 random_{GetParam()};
  std::size_t n_tokens_ = 24 + random_() % 40;
  std::size_t n_decoded_ = random_() % 6;
  std::size_t n_chunk_ = 8 + random_() % 60;
  Heads weights_ = random_weights(random_, n_tokens_, kGroup);
  Heads ungrouped_ = random_weights(random_, n_tokens_, kNoGroup);
};

TEST_P(AgainstOriginals, tova) {
  Layer layer("tova", weights_);
  observe_all(layer, n_tokens_, n_chunk_, n_decoded_);
  for (const std::size_t budget : {3UL, n_tokens_ / 2, n_tokens_}) {
    EXPECT_EQ(layer.keep(budget, 0).front(), originals::keep_highest(originals::tova_scores(weights_), budget));
  }
}

TEST_P(AgainstOriginals, h2o) {
  Layer layer("h2o:recent=0.25", weights_);
  observe_all(layer, n_tokens_, n_chunk_, n_decoded_);
  const Rows scores = originals::h2o_scores(weights_, kKvHeads, n_tokens_ / 4);
  for (const std::size_t budget : {n_tokens_ / 3, n_tokens_ / 2}) {
    EXPECT_EQ(layer.keep(budget, 0), originals::keep_highest(scores, budget));
  }
}

TEST_P(AgainstOriginals, h2o_by_lifetime_is_observed_attention) {
  Layer layer("h2o:recent=0,lifetime=1", weights_);
  observe_all(layer, n_tokens_, n_chunk_, n_decoded_);
  const Rows scores = originals::observed_attention_scores(weights_, kKvHeads);
  EXPECT_EQ(layer.keep(n_tokens_ / 2, 0), originals::keep_highest(scores, n_tokens_ / 2));
}

TEST_P(AgainstOriginals, snapkv) {
  for (const std::string pool : {"0", "1"}) {
    for (const std::size_t kernel : {1UL, 5UL, 7UL}) {
      Layer layer("snapkv:window=8,kernel=" + std::to_string(kernel) + ",max=" + pool, ungrouped_);
      // The window ends the prompt: a chunk shorter than it would be half of one.
      observe_all(layer, n_tokens_, std::max<std::size_t>(n_chunk_, n_tokens_), 0);
      const Rows scores = originals::snapkv_scores(
          ungrouped_, kKvHeads,
          {.window = 8, .pool = pool == "1" ? originals::Pool::kMaximum : originals::Pool::kAverage, .kernel = kernel});
      EXPECT_EQ(layer.keep(16, 8), originals::keep_highest(scores, 16)) << pool << ' ' << kernel;
    }
  }
}

TEST_P(AgainstOriginals, snapkv_while_decoding_looks_back_over_single_queries) {
  Layer layer("snapkv:window=4,kernel=1", weights_);
  observe_all(layer, n_tokens_, n_chunk_, 4);
  const Rows scores = originals::snapkv_scores(weights_, kKvHeads, {.window = 4, .kernel = 1});
  EXPECT_EQ(layer.keep(10, 4), originals::keep_highest(scores, 10));
}

TEST_P(AgainstOriginals, adakv) {
  for (const double floor : {0.0, 0.5, 1.0}) {
    Layer layer("adakv:window=8,kernel=7,floor=" + std::to_string(floor), ungrouped_);
    observe_all(layer, n_tokens_, n_tokens_, 0);
    const Rows scores =
        originals::snapkv_scores(ungrouped_, kKvHeads, {.window = 8, .pool = originals::Pool::kMaximum, .kernel = 7});
    const originals::Counts budgets = originals::adakv_budgets_exact(scores, {.capacity = 18, .alpha = floor});
    EXPECT_EQ(layer.keep(18, 8), originals::keep_highest(scores, budgets)) << floor;
  }
}

// Keys of small whole numbers, many of them alike.
TEST_P(AgainstOriginals, keydiff_and_knorm) {
  originals::Heads keys(1, Rows(n_tokens_, Row(4)));
  for (Row& key : keys[0]) {
    for (double& x : key) x = static_cast<double>(random_() % 3) - 1.0;
  }
  Evidence evidence = policy_test::blocks(static_cast<std::int32_t>(n_tokens_), 1, 1);
  ScopeEvidence& scope = evidence.scopes.front();
  scope.n_key_dims = 4;
  for (const Row& key : keys[0]) {
    const double length = originals::norm(key);
    scope.key_norm.push_back(length);
    for (const double x : key) scope.key_direction.push_back(static_cast<float>(length > 0.0 ? x / length : 0.0));
  }
  const Rows knorm = originals::knorm_scores(keys);
  EXPECT_EQ(policy_test::policy("knorm")->score(evidence, scope), knorm[0]);
  // Directions are floats: scores agree as far as those do.
  const Rows keydiff = originals::keydiff_scores(keys);
  const std::vector<double> ours = policy_test::policy("keydiff")->score(evidence, scope);
  for (std::size_t j = 0; j < n_tokens_; ++j) EXPECT_NEAR(ours[j], keydiff[0][j], 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AgainstOriginals, ::testing::Range(1U, 41U));

TEST(AgainstOriginals, pyramidkv_gives_layers_their_budgets) {
  constexpr std::int32_t kLayers = 5;
  Evidence evidence = policy_test::blocks(100, kLayers, 1);
  evidence.n_layers = kLayers;
  for (std::size_t j = 92; j < 100; ++j) evidence.blocks[j].hold = Hold::kProtected;
  for (ScopeEvidence& scope : evidence.scopes) scope.window_mean.assign(100, 1.0);
  const originals::Counts budgets =
      originals::pyramid_budgets_exact(100, {.n_layers = kLayers, .capacity = 48, .window = 8, .beta = 20});
  const std::vector<std::int32_t> quotas =
      policy_test::share(*policy_test::policy("pyramidkv"), evidence, 48 * kLayers);
  EXPECT_EQ(originals::Counts(quotas.begin(), quotas.end()), budgets);
}

}  // namespace
}  // namespace ebb::against_originals_test
