#include "policy/budget_list.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/choose.h"
#include "policy/policy_test.h"
#include "policy/share.h"

namespace ebb {
namespace {

using policy_test::blocks;
using policy_test::policy;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Counts = std::vector<std::int32_t>;

std::shared_ptr<const Policy> listed(std::string_view spec, Scope scope, std::vector<double> weights) {
  return with_list(policy(spec),
                   std::make_shared<BudgetList>(BudgetList{.scope = scope, .weights = std::move(weights)}));
}

// Blocks that are hot in every head of a model, as scopes of a layer or a head have them.
Evidence heads(std::int32_t n_blocks, std::int32_t n_layers, std::int32_t n_kv_heads, Scope scope) {
  Evidence evidence = blocks(n_blocks, scope == Scope::kLayer ? n_layers : n_layers * n_kv_heads);
  evidence.n_layers = n_layers;
  for (ScopeEvidence& of_scope : evidence.scopes) {
    for (ScopeRow& row : of_scope.rows) row.n_frames = scope == Scope::kLayer ? n_kv_heads : 1;
  }
  return evidence;
}

std::string refusal(const BudgetList& list, std::int32_t n_layers, std::int32_t n_kv_heads) {
  return list.validate(n_layers, n_kv_heads).message();
}

TEST(BudgetList, says_what_is_wrong_with_it) {
  EXPECT_TRUE((BudgetList{.weights = {1, 0, 0.5}}).validate(3, 2).ok());
  EXPECT_TRUE((BudgetList{.scope = Scope::kHead, .weights = {1, 0, 0.5, 7}}).validate(2, 2).ok());
  EXPECT_THAT(refusal({.weights = {1, 2}}, 3, 2), HasSubstr("2 shares by layer, and the model has 3 layers"));
  EXPECT_THAT(refusal({.scope = Scope::kHead, .weights = {1, 2}}, 2, 2),
              HasSubstr("2 shares by head, and the model has 4 heads (2 layers of 2 KV heads)"));
  EXPECT_THAT(refusal({.weights = {1, -2}}, 2, 1), HasSubstr("share 2 of 2 is -2"));
  EXPECT_THAT(refusal({.weights = {NAN, 1}}, 2, 1), HasSubstr("share 1 of 2 is nan"));
  EXPECT_THAT(refusal({.weights = {std::numeric_limits<double>::infinity(), 1}}, 2, 1), HasSubstr("is inf"));
  EXPECT_THAT(refusal({.weights = {1e300, 1}}, 2, 1), HasSubstr("give numbers from 0 to"));
  EXPECT_THAT(refusal({.weights = {0, 0}}, 2, 1), HasSubstr("all 2 shares are 0"));
}

TEST(BudgetList, a_policy_that_chose_for_the_whole_session_chooses_by_layer_or_head_and_keeps_its_name) {
  EXPECT_EQ(listed("streaming", Scope::kLayer, {1, 2})->asks().scope, Scope::kLayer);
  EXPECT_EQ(listed("evoke", Scope::kHead, {1, 2})->asks().scope, Scope::kHead);
  EXPECT_EQ(listed("tova", Scope::kHead, {1, 2})->asks().scope, Scope::kHead);
  EXPECT_EQ(listed("snapkv", Scope::kLayer, {1, 2})->asks().scope, Scope::kHead) << "finer already";
  EXPECT_EQ(listed("streaming", Scope::kLayer, {1, 2})->name(), "streaming");
  EXPECT_EQ(with_list(policy("streaming"), nullptr)->asks().scope, Scope::kSession);
}

// As EvolKV completes a list, b = k + (k / A) * (T - A), rounded by largest remainders.
TEST(BudgetList, layers_have_frames_in_proportion_and_the_rest_goes_to_the_largest_fractions) {
  const auto by_layer = listed("streaming", Scope::kLayer, {1, 3, 4});
  EXPECT_THAT(policy_test::share(*by_layer, heads(20, 3, 1, Scope::kLayer), 24), ElementsAre(3, 9, 12));
  EXPECT_THAT(policy_test::share(*by_layer, heads(20, 3, 1, Scope::kLayer), 21), ElementsAre(3, 8, 10))
      << "of 2.625, 7.875 and 10.5";
  EXPECT_THAT(policy_test::share(*listed("streaming", Scope::kLayer, {1, 1, 1, 1}), heads(20, 4, 1, Scope::kLayer), 6),
              ElementsAre(2, 2, 1, 1))
      << "ties to the lower layer";
}

TEST(BudgetList, what_a_layer_has_not_is_the_others) {
  const auto policy = listed("streaming", Scope::kLayer, {8, 1, 1});
  EXPECT_THAT(policy_test::share(*policy, heads(10, 3, 1, Scope::kLayer), 20), ElementsAre(10, 5, 5))
      << "of 16, 2 and 2";
}

TEST(BudgetList, held_frames_are_the_least_a_layer_has_and_count_for_its_share) {
  Evidence evidence = heads(10, 3, 1, Scope::kLayer);
  for (std::size_t b = 0; b < 3; ++b) evidence.blocks[b].hold = Hold::kProtected;
  const auto policy = listed("streaming", Scope::kLayer, {0, 1, 2});
  EXPECT_THAT(policy_test::share(*policy, evidence, 15), ElementsAre(3, 4, 8)) << "12 in proportion beside the 3 held";
}

TEST(BudgetList, what_room_is_made_for_counts_so_that_the_list_holds_once_it_has_come) {
  Evidence evidence = heads(20, 2, 2, Scope::kHead);
  evidence.n_new_frames = 8;
  const auto policy = listed("streaming", Scope::kHead, {5, 3, 1, 1});
  EXPECT_THAT(policy_test::share(*policy, evidence, 32), ElementsAre(18, 10, 2, 2))
      << "20, 12, 4 and 4 with two more each";
}

TEST(BudgetList, the_heads_of_a_layer_share_its_part_as_the_policy_has_them) {
  const auto even = listed("h2o", Scope::kLayer, {3, 1});
  Evidence evidence = heads(8, 2, 2, Scope::kHead);
  for (ScopeEvidence& scope : evidence.scopes) scope.total.assign(8, 1.0);
  EXPECT_THAT(policy_test::share(*even, evidence, 16), ElementsAre(6, 6, 2, 2));
  const auto won = listed("adakv:floor=0,window=1", Scope::kLayer, {3, 1});
  for (ScopeEvidence& scope : evidence.scopes) scope.window_mean.assign(8, scope.index % 2 == 0 ? 1.0 : 9.0);
  EXPECT_THAT(policy_test::share(*won, evidence, 16), ElementsAre(4, 8, 0, 4)) << "the second head of each looks more";
}

// The same by bisection of the one factor that all proportions have.
Counts expected_shares(std::int32_t total, const std::vector<double>& weights, const Counts& caps,
                       const Counts& floors) {
  const auto share = [&](std::size_t i, double factor) {
    return std::clamp<double>(factor * weights[i], floors[i], caps[i]);
  };
  double low = 0.0;
  double high = 1e9;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    double sum = 0.0;
    for (std::size_t k = 0; k < weights.size(); ++k) sum += share(k, middle);
    (sum < total ? low : high) = middle;
  }
  Counts shares;
  std::vector<std::pair<std::int64_t, std::size_t>> fractions;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const double real = share(k, high) + 1e-7;
    shares.push_back(static_cast<std::int32_t>(std::floor(real)));
    fractions.emplace_back(-std::llround((real - std::floor(real)) * 1e5), k);
  }
  std::ranges::sort(fractions);
  std::int32_t n_left = total - std::accumulate(shares.begin(), shares.end(), 0);
  for (std::size_t i = 0; n_left > 0; i = (i + 1) % fractions.size()) {
    const std::size_t k = fractions[i].second;
    if (shares[k] == caps[k]) continue;
    ++shares[k];
    --n_left;
  }
  return shares;
}

TEST(ShareOut, keeps_proportions_between_floors_and_caps) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> weights;
    Counts caps;
    Counts floors;
    for (std::size_t i = 1 + random() % 8; i-- > 0;) {
      weights.push_back(1.0 + static_cast<double>(random() % 7));
      floors.push_back(static_cast<std::int32_t>(random() % 4));
      caps.push_back(floors.back() + static_cast<std::int32_t>(random() % 12));
    }
    const std::int32_t least = std::accumulate(floors.begin(), floors.end(), 0);
    const std::int32_t most = std::accumulate(caps.begin(), caps.end(), 0);
    const std::int32_t total = least + static_cast<std::int32_t>(random() % static_cast<unsigned>(most - least + 1));
    EXPECT_EQ(share_out(total, weights, caps, floors), expected_shares(total, weights, caps, floors)) << round;
  }
}

TEST(BudgetList, every_policy_scores_by_layer_and_by_head) {
  for (const PolicyEntry& entry : policies()) {
    for (const Scope scope : {Scope::kLayer, Scope::kHead}) {
      const auto policy = listed(entry.name, scope, std::vector<double>(scope == Scope::kLayer ? 2 : 6, 1.0));
      Evidence evidence = heads(5, 2, 3, policy->asks().scope);
      for (ScopeEvidence& of_scope : evidence.scopes) {
        policy_test::fill_columns(of_scope, [] { return 0.5; });
        EXPECT_EQ(rank_rows(*policy, evidence, of_scope).size(), 5U) << entry.name;
      }
      const std::vector<Victim> victims = choose_victims(*policy, evidence, 6, 6);
      EXPECT_EQ(victims.empty(), entry.name == "none") << entry.name;
    }
  }
}

TEST(BudgetList, one_order_for_all_stays_one_order) {
  const auto policy = listed("random", Scope::kHead, std::vector<double>(4, 1.0));
  const Evidence evidence = heads(6, 2, 2, Scope::kHead);
  const std::vector<double> first = rank_rows(*policy, evidence, evidence.scopes[0]);
  for (const ScopeEvidence& scope : evidence.scopes) EXPECT_EQ(rank_rows(*policy, evidence, scope), first);
  const auto by_head = listed("random:heads=1", Scope::kHead, std::vector<double>(4, 1.0));
  EXPECT_NE(rank_rows(*by_head, evidence, evidence.scopes[1]), rank_rows(*by_head, evidence, evidence.scopes[0]));
}

}  // namespace
}  // namespace ebb
