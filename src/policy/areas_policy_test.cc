// Areas as a policy, at a grain of one token, beside the scheme itself: what leaves behind a prompt is the same.
#include <algorithm>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/to_size.h"
#include "policy/areas.h"
#include "policy/areas_scores.h"
#include "policy/choose.h"
#include "policy/policy_test.h"

namespace ebb::areas_policy_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int32_t kBlock = 8;
constexpr std::int32_t kStart = 16;
constexpr std::int32_t kRecent = 24;
constexpr std::int32_t kMost = 96;
constexpr std::int32_t kPrompt = 203;
constexpr std::int32_t kWindow = 6;

// A prompt in one pass, then a token that looks at nothing.
std::vector<float> random_scores(std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> scores;
  // Few values, so that there are ties.
  for (std::int32_t i = 0; i < kPrompt; ++i) scores.push_back(static_cast<float>(random() % 7) / 4.0F);
  return scores;
}

std::vector<std::int32_t> victims_of_scheme(const AreasConfig& config, const std::vector<float>& prompt,
                                            std::int32_t block = kBlock) {
  AreasSequence sequence = AreasSequence::make(config, {.block_size = block, .n_layers = 1}, kPrompt).value();
  EXPECT_TRUE(sequence.register_scores({.n_scheduled = kPrompt, .scores = {{prompt}}}).ok());
  EXPECT_THAT(sequence.evict().value().front().victims, IsEmpty());
  const std::vector<float> nothing(kPrompt + 1, 0.0F);
  EXPECT_TRUE(sequence.register_scores({.n_scheduled = 1, .scores = {{nothing}}}).ok());
  return sequence.evict().value().front().victims;
}

Evidence evidence_of(const std::vector<float>& prompt, std::int32_t n_heads = 1) {
  Evidence evidence = policy_test::blocks(kPrompt + 1, 1, 1);
  ScopeEvidence& scope = evidence.scopes.front();
  for (ScopeRow& row : scope.rows) row.n_frames = n_heads;
  // Totals are noted pooled.
  const std::vector<double> pooled = pool_ahead(std::vector<double>(prompt.begin(), prompt.end()));
  for (std::int32_t i = 0; i <= kPrompt; ++i) {
    scope.total.push_back(i < kPrompt ? pooled[to_size(i)] : 0.0);
    scope.n_queries.push_back(std::min(kWindow, kPrompt - i) + 1);
  }
  return evidence;
}

// Of a layer with n_heads KV heads: a row has a frame in each.
std::vector<std::int32_t> victims_of_policy(const std::string& parameters, const std::vector<float>& prompt,
                                            std::size_t n_blocks, std::int32_t n_heads = 1) {
  const auto policy = policy_test::policy(
      fmt::format("areas:start={},recent={},block={},window={}{}", kStart, kRecent, kBlock, kWindow, parameters));
  const auto n_frames = static_cast<std::int32_t>(n_blocks) * kBlock * n_heads;
  std::vector<std::int32_t> tokens(to_size(kPrompt) / kBlock + 1, 0);
  for (const Victim& victim : choose_victims(*policy, evidence_of(prompt, n_heads), n_frames, n_frames)) {
    ++tokens[victim.block.index() / kBlock];
  }
  std::vector<std::int32_t> blocks;
  for (std::size_t b = 0; b < tokens.size(); ++b) {
    EXPECT_TRUE(tokens[b] == 0 || tokens[b] == kBlock) << "block " << b << " leaves in part";
    if (tokens[b] > 0) blocks.push_back(static_cast<std::int32_t>(b));
  }
  return blocks;
}

AreasConfig config_of(Aggregation aggregation) {
  return {.start_tokens = kStart,
          .recent_tokens = kRecent,
          .max_tokens = kMost,
          .aggregation = aggregation,
          .n_window_queries = kWindow};
}

TEST(AreasPolicy, chooses_behind_a_prompt_what_the_scheme_chooses) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const std::vector<float> prompt = random_scores(seed);
    const std::vector<std::int32_t> sum = victims_of_scheme(config_of(Aggregation::kSum), prompt);
    ASSERT_FALSE(sum.empty());
    EXPECT_EQ(victims_of_policy(",norm=0", prompt, sum.size()), sum) << "seed " << seed;
    const std::vector<std::int32_t> normed = victims_of_scheme(config_of(Aggregation::kNormSum), prompt);
    EXPECT_EQ(victims_of_policy("", prompt, normed.size()), normed) << "seed " << seed;
  }
}

// As many more come into question as are rescued: of the same blocks the same are.
TEST(AreasPolicy, rescues_what_kvcrush_rescues_and_stays_inside_the_budget) {
  constexpr std::int32_t kRescued = 3;
  std::size_t n_changed = 0;
  for (std::int32_t anchor = 0; anchor < 5; ++anchor) {
    for (std::uint32_t seed = 0; seed < 12; ++seed) {
      const std::vector<float> prompt = random_scores(seed);
      AreasConfig config = config_of(Aggregation::kNormSum);
      const std::size_t n_plain = victims_of_scheme(config, prompt).size();
      // The scheme keeps its budget by a smaller limit for the others; the policy is given the same number of victims.
      config.crush = {.budget_blocks = kRescued, .anchor = static_cast<CrushAnchor>(anchor), .rng_seed = 5};
      const std::vector<std::int32_t> crushed = victims_of_scheme(config, prompt);
      ASSERT_EQ(crushed.size(), n_plain);
      const std::string parameters = fmt::format(",crush={},anchor={},seed=5", kRescued, anchor);
      for (const std::int32_t n_heads : {1, 2, 8}) {
        EXPECT_EQ(victims_of_policy(parameters, prompt, n_plain, n_heads), crushed)
            << "anchor " << anchor << ", seed " << seed << ", " << n_heads << " heads";
      }
      n_changed += victims_of_policy("", prompt, n_plain) == crushed ? 0 : 1;
    }
  }
  EXPECT_GT(n_changed, 30U) << "rescue changes what leaves";
}

TEST(AreasPolicy, gives_up_the_recent_area_before_the_start) {
  const std::vector<float> prompt = random_scores(1);
  const auto policy = policy_test::policy("areas:start=16,recent=24,block=8");
  constexpr std::int32_t kLeaving = kPrompt - kStart - 4;
  const std::vector<Victim> victims = choose_victims(*policy, evidence_of(prompt), kLeaving, kLeaving);
  for (const Victim& victim : victims) EXPECT_GE(victim.block.value(), kStart);
  EXPECT_EQ(victims.back().block.value(), kStart + kLeaving - 1) << "the oldest of the recent first";
}

// The prompt in blocks of so many tokens, which slices of one token tell apart.
Evidence evidence_of_slices(const std::vector<float>& prompt, std::int32_t grain) {
  const Evidence tokens = evidence_of(prompt);
  const ScopeEvidence& by_token = tokens.scopes.front();
  const std::int32_t n_blocks = (kPrompt + grain) / grain;
  Evidence evidence = policy_test::blocks(n_blocks, 1, grain);
  evidence.end = tokens.end;
  evidence.blocks.back().span.end = evidence.end;
  evidence.blocks.back().hold = evidence.blocks.back().span.n_tokens() < grain ? Hold::kPinned : Hold::kNone;
  SliceColumns& slices = evidence.scopes.front().slices;
  slices.n_tokens = 1;
  slices.n_slices = to_size(grain);
  slices.total = by_token.total;
  slices.n_queries = by_token.n_queries;
  for (auto* column : {&slices.total, &slices.n_queries}) column->resize(to_size(n_blocks * grain), 5.0);
  // What blocks are told to have been given is not looked at.
  for (auto* column : {&evidence.scopes.front().total, &evidence.scopes.front().n_queries}) {
    column->assign(to_size(n_blocks), 1.0);
  }
  return evidence;
}

// Blocks of `block` tokens, or of the grain where that is larger, of which so many are to leave.
std::vector<std::int32_t> victims_by_slices(const std::string& spec, const Evidence& evidence, std::int32_t block,
                                            std::size_t n_blocks) {
  const auto policy = policy_test::policy(spec);
  EXPECT_TRUE(policy->check_grain(evidence.grain).ok());
  const std::int32_t n_in_block = std::max(1, block / evidence.grain);
  const std::int32_t n_rows = static_cast<std::int32_t>(n_blocks) * n_in_block;
  std::map<std::int32_t, std::int32_t> rows;
  for (const Victim& victim : choose_victims(*policy, evidence, n_rows, n_rows)) {
    ++rows[victim.block.value() / n_in_block];
  }
  std::vector<std::int32_t> blocks;
  for (const auto& [b, n] : rows) {
    EXPECT_EQ(n, n_in_block) << "block " << b << " leaves in part";
    blocks.push_back(b);
  }
  return blocks;
}

struct SlicedCase {
  std::int32_t grain;
  std::int32_t block;
};

// Start and recent areas are whole blocks of every grain.
TEST(AreasPolicy, chooses_and_rescues_by_tokens_whatever_the_grain) {
  std::size_t n_changed = 0;
  for (const SlicedCase& sliced : {SlicedCase{2, 8}, {4, 8}, {8, 8}, {16, 8}}) {
    const std::int32_t block = std::max(sliced.grain, sliced.block);
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(fmt::format("grain {}, seed {}", sliced.grain, seed));
      const std::vector<float> prompt = random_scores(seed);
      const Evidence evidence = evidence_of_slices(prompt, sliced.grain);
      AreasConfig config = config_of(seed % 2 == 0 ? Aggregation::kNormSum : Aggregation::kSum);
      config.recent_tokens = 32;
      const std::string spec = fmt::format("areas:start={},recent=32,block={},window={},norm={}", kStart, sliced.block,
                                           kWindow, seed % 2 == 0 ? 1 : 0);
      const std::vector<std::int32_t> plain = victims_of_scheme(config, prompt, block);
      EXPECT_EQ(victims_by_slices(spec, evidence, block, plain.size()), plain);
      // As many tokens as two blocks of 8 are rescued.
      config.crush = {
          .budget_blocks = 2 * sliced.block / block, .anchor = static_cast<CrushAnchor>(seed % 5), .rng_seed = 5};
      const std::vector<std::int32_t> crushed = victims_of_scheme(config, prompt, block);
      EXPECT_EQ(
          victims_by_slices(spec + fmt::format(",crush=2,anchor={},seed=5", seed % 5), evidence, block, crushed.size()),
          crushed);
      n_changed += plain == crushed ? 0 : 1;
    }
  }
  EXPECT_GT(n_changed, 80U) << "rescue changes what leaves";
}

TEST(AreasPolicy, refuses_to_crush_blocks_whose_tokens_it_cannot_tell_apart) {
  const auto policy = policy_test::policy("areas:crush=2,slice=0");
  EXPECT_TRUE(policy->check_grain(8).ok());
  EXPECT_THAT(policy->check_grain(32).message(), HasSubstr("give slice=1, or crush=0"));
  EXPECT_TRUE(policy_test::policy("areas:slice=0")->check_grain(32).ok());
  EXPECT_TRUE(policy_test::policy("areas:crush=2")->check_grain(64).ok()) << "slices tell them apart";
  EXPECT_THAT(policy_test::policy("areas:crush=2,slice=32")->check_grain(64).message(), HasSubstr("slice=1"));
}

}  // namespace
}  // namespace ebb::areas_policy_test
