#include "policy/choose.h"

#include <cmath>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/policy_test.h"
#include "policy/share.h"

namespace ebb {
namespace {

using policy_test::blocks;
using policy_test::policy;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<BlockIndex> victims(const Policy& policy, const Evidence& evidence, std::int32_t n_wanted,
                                std::int32_t n_needed) {
  std::vector<BlockIndex> blocks;
  for (const Victim& victim : choose_victims(policy, evidence, n_wanted, n_needed)) blocks.push_back(victim.block);
  return blocks;
}

std::vector<BlockIndex> victims(const Policy& policy, const Evidence& evidence, std::int32_t n) {
  return victims(policy, evidence, n, n);
}

// Scores that a test gives, by scope and row.
class Given final : public Policy {
 public:
  Given(std::vector<std::vector<double>> scores, Shares shares) : scores_(std::move(scores)), shares_(shares) {}

  [[nodiscard]] std::string_view name() const override { return "given"; }
  [[nodiscard]] Ask asks() const override { return {.scope = Scope::kHead}; }
  [[nodiscard]] Shares shares() const override { return shares_; }
  [[nodiscard]] std::vector<double> score(const Evidence&, const ScopeEvidence& scope) const override {
    return scores_[static_cast<std::size_t>(scope.index)];
  }

 private:
  std::vector<std::vector<double>> scores_;
  Shares shares_;
};

TEST(Choose, takes_blocks_until_they_give_the_frames_that_are_wanted) {
  Evidence evidence = blocks(4);
  for (ScopeRow& row : evidence.scopes[0].rows) row.n_frames = 3;
  EXPECT_THAT(victims(*policy("recency"), evidence, 4), ElementsAre(BlockIndex(0), BlockIndex(1)))
      << "six frames, since one block gives too few";
  evidence.scopes[0].rows[0].n_frames = 4;
  EXPECT_THAT(victims(*policy("recency"), evidence, 4), ElementsAre(BlockIndex(0)));
}

TEST(Choose, takes_the_oldest_blocks_first_by_recency) {
  EXPECT_THAT(victims(*policy("recency"), blocks(3), 2), ElementsAre(BlockIndex(0), BlockIndex(1)));
}

TEST(Choose, never_takes_pinned_blocks) {
  Evidence evidence = blocks(3);
  evidence.blocks[0].hold = Hold::kPinned;
  EXPECT_THAT(victims(*policy("recency"), evidence, 3), ElementsAre(BlockIndex(1), BlockIndex(2)));
}

TEST(Choose, takes_protected_blocks_last_and_only_as_many_as_are_needed) {
  Evidence evidence = blocks(4);
  evidence.blocks[0].hold = Hold::kProtected;
  evidence.blocks[1].hold = Hold::kProtected;
  const auto recency = policy("recency");
  EXPECT_THAT(victims(*recency, evidence, 2, 1), ElementsAre(BlockIndex(2), BlockIndex(3)));
  EXPECT_THAT(victims(*recency, evidence, 4, 2), ElementsAre(BlockIndex(2), BlockIndex(3)));
  EXPECT_THAT(victims(*recency, evidence, 4, 3), ElementsAre(BlockIndex(2), BlockIndex(3), BlockIndex(0)));
}

TEST(Choose, takes_what_the_turn_asked_for_last_of_all) {
  Evidence evidence = blocks(3);
  evidence.blocks[0].hold = Hold::kKept;
  evidence.blocks[1].hold = Hold::kProtected;
  EXPECT_THAT(victims(*policy("recency"), evidence, 3), ElementsAre(BlockIndex(2), BlockIndex(1), BlockIndex(0)));
}

TEST(Choose, priorities_count_for_a_policy_that_knows_nothing_of_them) {
  Evidence evidence = blocks(4);
  evidence.blocks[0].priority = 4.0;
  evidence.blocks[3].priority = 0.0;
  EXPECT_THAT(victims(*policy("streaming"), evidence, 4),
              ElementsAre(BlockIndex(3), BlockIndex(1), BlockIndex(0), BlockIndex(2)))
      << "ranks 1/8, 3/8, 5/8, 7/8 times 4, 1, 1, 0";
}

TEST(Choose, counts_what_is_needed_in_hard_mode_and_down_to_the_low_mark_otherwise) {
  EXPECT_EQ(count_victims(8, 1, 10, {}), 0);
  EXPECT_EQ(count_victims(10, 2, 10, {}), 2);
  const Watermarks marks = {.high = 0.9, .low = 0.5};
  EXPECT_EQ(count_victims(8, 1, 10, marks), 0);
  EXPECT_EQ(count_victims(9, 1, 10, marks), 5);
  EXPECT_EQ(count_victims(10, 8, 10, marks), 13);
  EXPECT_FALSE((Watermarks{.high = 0.5, .low = 0.9}).validate().ok());
  EXPECT_FALSE((Watermarks{.high = 1.1, .low = 0.9}).validate().ok());
  EXPECT_FALSE((Watermarks{.high = NAN, .low = NAN}).validate().ok());
  EXPECT_TRUE(marks.validate().ok());
}

TEST(Choose, each_head_lets_its_own_lowest_go) {
  const Given given({{1, 2, 3}, {3, 2, 1}}, {});
  EXPECT_THAT(choose_victims(given, blocks(3, 2), 2, 2),
              ElementsAre(Victim{.block = BlockIndex(0), .scope = 0}, Victim{.block = BlockIndex(2), .scope = 1}));
}

TEST(Choose, what_one_head_holds_too_firmly_another_gives_where_the_least_is_lost) {
  Evidence evidence = blocks(3, 2);
  for (BlockEvidence& block : evidence.blocks) block.hold = Hold::kProtected;
  evidence.blocks[1].hold = Hold::kNone;
  const Given given({{1, 2, 3}, {3, 2, 1}}, {});
  EXPECT_THAT(choose_victims(given, evidence, 4, 3),
              ElementsAre(Victim{.block = BlockIndex(1), .scope = 0}, Victim{.block = BlockIndex(1), .scope = 1},
                          Victim{.block = BlockIndex(0), .scope = 0}));
}

TEST(Choose, whole_blocks_go_by_their_mean_rank_over_the_heads) {
  const Given given({{1, 2, 3}, {3, 1, 2}}, {});
  EXPECT_THAT(choose_blocks(given, blocks(3, 2), 2), ElementsAre(BlockIndex(1), BlockIndex(0)))
      << "mean ranks 1/2 (of 1/6 and 5/6), 1/3 and 2/3";
}

TEST(ShareOut, gives_every_frame_and_none_past_a_cap) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    std::vector<double> weights;
    std::vector<std::int32_t> caps;
    for (std::size_t i = random() % 9; i-- > 0;) {
      weights.push_back(static_cast<double>(random() % 5));
      caps.push_back(static_cast<std::int32_t>(random() % 7));
    }
    const auto total = static_cast<std::int32_t>(random() % 40);
    const std::vector<std::int32_t> shares = share_out(total, weights, caps);
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      EXPECT_LE(shares[i], caps[i]);
      EXPECT_GE(shares[i], 0);
      sum += shares[i];
    }
    EXPECT_EQ(sum, std::min(total, std::accumulate(caps.begin(), caps.end(), 0)));
  }
}

TEST(ShareOut, gives_the_rest_to_the_largest_fractions_and_to_the_earlier_of_equals) {
  const std::vector<std::int32_t> caps(3, 100);
  EXPECT_THAT(share_out(7, std::vector<double>{1, 1, 1}, caps), ElementsAre(3, 2, 2));
  EXPECT_THAT(share_out(10, std::vector<double>{1, 2, 4}, caps), ElementsAre(1, 3, 6)) << "of 1.43, 2.86, 5.71";
  EXPECT_THAT(share_out(10, std::vector<double>{1, 1, 1}, std::vector<std::int32_t>{1, 100, 100}),
              ElementsAre(1, 5, 4));
}

TEST(ShareFrames, a_pyramid_falls_by_equal_steps) {
  Evidence evidence = blocks(40, 3);
  evidence.n_layers = 3;
  const Given given(std::vector(3, std::vector<double>(40, 1.0)), {.sharing = FrameSharing::kPyramid, .floor = 0.5});
  EXPECT_THAT(policy_test::share(given, evidence, 60), ElementsAre(30, 20, 10));
}

TEST(ShareFrames, heads_of_a_layer_win_frames_from_each_other_above_their_floor) {
  Evidence evidence = blocks(4, 4);
  evidence.n_layers = 2;
  const std::vector<std::vector<double>> scores = {{9, 8, 7, 6}, {1, 1, 1, 1}, {2, 2, 2, 9}, {9, 9, 9, 1}};
  EXPECT_THAT(policy_test::share(Given(scores, {.sharing = FrameSharing::kAcrossHeads, .floor = 0.0}), evidence, 8),
              ElementsAre(4, 0, 1, 3));
  EXPECT_THAT(policy_test::share(Given(scores, {.sharing = FrameSharing::kAcrossHeads, .floor = 0.5}), evidence, 8),
              ElementsAre(3, 1, 2, 2))
      << "half of an even share of 2, and half of what was won";
  EXPECT_THAT(policy_test::share(Given(scores, {.sharing = FrameSharing::kAcrossHeads, .floor = 1.0}), evidence, 8),
              Each(2));
}

TEST(ShareFrames, all_heads_win_from_each_other_across_layers) {
  Evidence evidence = blocks(2, 4);
  evidence.n_layers = 2;
  const std::vector<std::vector<double>> scores = {{9, 8}, {1, 2}, {3, 1}, {7, 1}};
  EXPECT_THAT(policy_test::share(Given(scores, {.sharing = FrameSharing::kAcrossLayers, .floor = 0.0}), evidence, 4),
              ElementsAre(2, 0, 1, 1));
}

}  // namespace
}  // namespace ebb
