// Policies that look at slices of one token in blocks of sixteen: tokens are pooled as the originals' definitions pool them
// (policy/originals_twin.h), across the borders of blocks, and a block is worth the mean, or the largest, of its tokens.
#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/to_size.h"
#include "policy/attention_notes.h"
#include "policy/choose.h"
#include "policy/originals_attention_twin.h"
#include "policy/originals_budgets_twin.h"
#include "policy/policy_test.h"

namespace ebb::against_originals_slices_test {
namespace {

using originals::Heads;
using originals::Row;
using originals::Rows;
using originals::Tokens;
using ::testing::HasSubstr;

constexpr std::int32_t kGrain = 16;
constexpr std::size_t kHeads = 2;
constexpr std::size_t kWindow = 8;

// Eighths, which sums and means keep exactly, so that what ties in the original ties here.
Heads weights_of(std::mt19937& random, std::size_t n_tokens) {
  Heads weights(kHeads, Rows(n_tokens, Row(n_tokens, 0.0)));
  for (Rows& head : weights) {
    for (std::size_t q = 0; q < n_tokens; ++q) {
      for (std::size_t j = 0; j <= q; ++j) head[q][j] = static_cast<double>(random() % 5 == 0 ? random() % 9 : 0) / 8.0;
    }
  }
  return weights;
}

// What the last queries gave, in one step, as a session would note it.
std::vector<float> window_sums(const Rows& head, std::size_t n_slices_in_all) {
  std::vector<float> sums(n_slices_in_all, 0.0F);
  for (std::size_t q = head.size() - kWindow; q < head.size(); ++q) {
    for (std::size_t j = 0; j <= q; ++j) sums[j] += static_cast<float>(head[q][j]);
  }
  return sums;
}

Evidence evidence_of_slices(const Policy& policy, const Heads& weights) {
  const auto n_tokens = static_cast<std::int32_t>(weights.front().size());
  const std::int32_t n_blocks = (n_tokens + kGrain - 1) / kGrain;
  Evidence evidence = policy_test::blocks(n_blocks, kHeads, kGrain);
  evidence.end = Position(n_tokens);
  evidence.blocks.back().span.end = evidence.end;
  std::vector<BlockIndex> blocks;
  for (BlockEvidence& block : evidence.blocks) {
    blocks.push_back(block.block);
    if (block.span.end > evidence.end - static_cast<std::int32_t>(kWindow)) block.hold = Hold::kProtected;
  }
  AttentionNotes notes(kHeads, policy.asks(), kGrain);
  notes.begin_step({.observed = {Position(n_tokens - static_cast<std::int32_t>(kWindow)), Position(n_tokens)},
                    .n_window = static_cast<std::int32_t>(kWindow)},
                   kGrain);
  for (std::size_t head = 0; head < kHeads; ++head) {
    const std::vector<float> slices = window_sums(weights[head], blocks.size() * to_size(kGrain));
    const std::vector<float> none(blocks.size(), 0.0F);  // blocks themselves are not looked at
    notes.add(head, {.blocks = blocks,
                     .sum = none,
                     .window_sum = none,
                     .window_max = none,
                     .last = none,
                     .slices = {slices, slices, slices, slices}});
    notes.fill(policy.asks(), head, 1, blocks, evidence.scopes[head]);
  }
  return evidence;
}

// Of the blocks that lie wholly before the window; the others stay.
Rows lifted(const Rows& scores, bool takes_most) {
  Rows blocks;
  for (const Row& head : scores) {
    Row& row = blocks.emplace_back();
    for (std::size_t begin = 0; begin < head.size(); begin += to_size(kGrain)) {
      const std::size_t end = std::min(head.size(), begin + to_size(kGrain));
      double sum = 0.0;
      double most = 0.0;
      for (std::size_t j = begin; j < end; ++j) {
        sum += head[j];
        most = std::max(most, head[j]);
      }
      const bool is_protected = end + kWindow > head.size();
      row.push_back(is_protected ? originals::kAlways : takes_most ? most : sum / static_cast<double>(end - begin));
    }
  }
  return blocks;
}

std::vector<Tokens> kept_blocks(const Policy& policy, const Evidence& evidence, std::size_t budget) {
  const auto n_leave = static_cast<std::int32_t>((evidence.blocks.size() - budget) * kHeads);
  std::vector<std::vector<bool>> leaves(kHeads, std::vector<bool>(evidence.blocks.size(), false));
  for (const Victim& victim : choose_victims(policy, evidence, n_leave, n_leave)) {
    leaves[to_size(victim.scope)][victim.block.index()] = true;
  }
  std::vector<Tokens> kept(kHeads);
  for (std::size_t h = 0; h < kHeads; ++h) {
    for (std::size_t b = 0; b < evidence.blocks.size(); ++b) {
      if (!leaves[h][b]) kept[h].push_back(b);
    }
  }
  return kept;
}

class AgainstOriginalsBySlices : public ::testing::TestWithParam<unsigned> {
 protected:
  std::mt19937 random_{GetParam()};
  std::size_t n_tokens_ = 120 + random_() % 100;
  Heads weights_ = weights_of(random_, n_tokens_);
};

TEST_P(AgainstOriginalsBySlices, snapkv_pools_tokens_and_lifts_them_to_blocks) {
  for (const bool takes_most : {false, true}) {
    for (const bool pools_max : {false, true}) {
      for (const std::size_t kernel : {1UL, 5UL, 7UL}) {
        const auto policy = policy_test::policy(fmt::format("snapkv:window=8,kernel={},max={},slice=1,lift={}", kernel,
                                                            pools_max ? 1 : 0, takes_most ? 1 : 0));
        const Evidence evidence = evidence_of_slices(*policy, weights_);
        const Rows tokens =
            originals::snapkv_scores(weights_, kHeads,
                                     {.window = kWindow,
                                      .pool = pools_max ? originals::Pool::kMaximum : originals::Pool::kAverage,
                                      .kernel = kernel});
        const Rows blocks = lifted(tokens, takes_most);
        for (const std::size_t budget : {3UL, 5UL}) {
          EXPECT_EQ(kept_blocks(*policy, evidence, budget), originals::keep_highest(blocks, budget))
              << "kernel " << kernel << (pools_max ? ", largest" : ", mean") << (takes_most ? ", most" : "");
        }
      }
    }
  }
}

TEST_P(AgainstOriginalsBySlices, adakv_gives_heads_what_their_blocks_win) {
  const auto policy = policy_test::policy("adakv:window=8,kernel=7,floor=0,slice=1");
  const Evidence evidence = evidence_of_slices(*policy, weights_);
  const Rows tokens =
      originals::snapkv_scores(weights_, kHeads, {.window = kWindow, .pool = originals::Pool::kMaximum, .kernel = 7});
  EXPECT_EQ(kept_blocks(*policy, evidence, 5), originals::keep_highest_of_all(lifted(tokens, false), 10));
}

INSTANTIATE_TEST_SUITE_P(Seeds, AgainstOriginalsBySlices, ::testing::Range(1U, 41U));

// Blocks whose sums are alike: one has all of it in a token, beside a border.
TEST(SnapKvBySlices, pools_across_the_borders_of_blocks_where_blocks_alone_would_not) {
  const auto policy = policy_test::policy("snapkv:window=1,kernel=3,slice=1");
  Evidence evidence = policy_test::blocks(4, 1, 4);
  SliceColumns& slices = evidence.scopes.front().slices;
  slices.n_tokens = 1;
  slices.n_slices = 4;
  slices.window_mean = {0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_THAT(policy->score(evidence, evidence.scopes.front()), ::testing::ElementsAre(2, 4, 0, 0));
}

TEST(SnapKvBySlices, refuses_slices_that_do_not_fill_a_block) {
  const auto policy = policy_test::policy("snapkv:slice=6");
  EXPECT_THAT(policy->check_grain(16).message(), HasSubstr("slices of 6 tokens do not fill blocks of 16"));
  EXPECT_TRUE(policy->check_grain(12).ok());
  EXPECT_TRUE(policy->check_grain(4).ok()) << "a block is finer than a slice";
  EXPECT_EQ(policy->asks().n_slices(4), 0);
  EXPECT_EQ(policy->asks().n_slices(12), 2);
}

}  // namespace
}  // namespace ebb::against_originals_slices_test
