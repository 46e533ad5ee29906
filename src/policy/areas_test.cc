// The areas scheme by hand: the description's examples, what its limit means, and every error.
#include "policy/areas.h"

#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Scores = std::vector<std::vector<float>>;

AreasSequence make(const AreasConfig& config, std::int32_t block_size, std::int32_t n_prompt,
                   std::int32_t n_layers = 1) {
  return AreasSequence::make(config, {.block_size = block_size, .n_layers = n_layers}, n_prompt).value();
}

// Scores of all cached tokens are `score` of their block's number.
template <class Score>
Status register_pass(AreasSequence& sequence, std::int32_t n_scheduled, Score score) {
  const std::int32_t n = sequence.n_cached() + n_scheduled;
  Scores scores(static_cast<std::size_t>(sequence.shape().n_layers));
  for (auto& row : scores) {
    for (std::int32_t i = 0; i < n; ++i) row.push_back(score(i / sequence.shape().block_size));
  }
  return sequence.register_scores({.n_scheduled = n_scheduled, .scores = scores});
}

std::vector<std::int32_t> victims_of_pass(AreasSequence& sequence, std::int32_t n_scheduled) {
  const Status status = register_pass(sequence, n_scheduled, [](std::int32_t) { return 1.0F; });
  EXPECT_TRUE(status.ok()) << status.message();
  const Result<std::vector<AreasEviction>> evictions = sequence.evict();
  EXPECT_TRUE(evictions.ok()) << evictions.status().message();
  return evictions.ok() ? evictions->front().victims : std::vector<std::int32_t>();
}

std::vector<std::int32_t> numbers(std::int32_t begin, std::int32_t end) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(end - begin));
  std::iota(all.begin(), all.end(), begin);
  return all;
}

// Blocks of 4: one of start, one recent, and two, later three, that compete.
constexpr AreasConfig kSmall{
    .start_tokens = 4, .recent_tokens = 4, .max_tokens = 16, .aggregation = Aggregation::kSum, .n_window_queries = 0};

TEST(Areas, cut_a_long_prompt_in_one_go_after_it_has_ended) {
  AreasSequence sequence =
      make({.start_tokens = 64, .recent_tokens = 64, .max_tokens = 512, .aggregation = Aggregation::kSum}, 16, 1000);
  EXPECT_THAT(victims_of_pass(sequence, 600), IsEmpty()) << "prefill never evicts";
  EXPECT_THAT(victims_of_pass(sequence, 400), IsEmpty()) << "nor does the pass that ends it";
  EXPECT_EQ(victims_of_pass(sequence, 1), numbers(4, 34)) << "30 of [4, 58), the older ones where all are equal";
  EXPECT_EQ(sequence.n_cached(), 521);
  EXPECT_LE(sequence.n_cached(), sequence.config().max_tokens_after_eviction(16));
  for (int n = 522; n < 528; ++n) EXPECT_THAT(victims_of_pass(sequence, 1), IsEmpty()) << n;
  EXPECT_THAT(victims_of_pass(sequence, 1), ElementsAre(4)) << "at 528, and then one for each block that fills";
  for (int n = 513; n < 528; ++n) EXPECT_THAT(victims_of_pass(sequence, 1), IsEmpty()) << n;
  EXPECT_THAT(victims_of_pass(sequence, 1), ElementsAre(4));
}

TEST(Areas, let_the_lowest_leave_wherever_they_stand_between_start_and_recent) {
  AreasSequence sequence = make(kSmall, 4, 24);
  // Pooling looks 6 tokens ahead, so a block stands near to the larger of itself and the next.
  const std::vector<float> by_block = {0, 9, 9, 1, 1, 1, 0};
  const auto score = [&](std::int32_t block) { return by_block[static_cast<std::size_t>(block)]; };
  ASSERT_TRUE(register_pass(sequence, 24, score).ok());
  EXPECT_THAT(sequence.evict().value().front().victims, IsEmpty());
  ASSERT_TRUE(register_pass(sequence, 1, score).ok());
  EXPECT_THAT(sequence.evict().value().front().victims, ElementsAre(3, 4))
      << "0 is of the start area and 5 is recent; the lowest two of 1, 2, 3, 4";
  EXPECT_EQ(sequence.n_cached(), 17);
}

TEST(Areas, choose_for_each_layer_by_itself) {
  AreasSequence sequence = make(kSmall, 4, 20, 2);
  Scores scores(2, std::vector<float>(20, 1.0F));
  scores[0][12] = 9.0F;  // begins block 3, so that pooling gives it to blocks 1 and 2 more than to 3
  ASSERT_TRUE(sequence.register_scores({.n_scheduled = 20, .scores = scores}).ok());
  for (auto& row : scores) row.assign(21, 0.0F);
  scores[1][6] = 9.0F;  // block 1
  ASSERT_TRUE(sequence.register_scores({.n_scheduled = 1, .scores = scores}).ok());
  const std::vector<AreasEviction> evictions = sequence.evict().value();
  EXPECT_THAT(evictions[0].victims, ElementsAre(3));
  EXPECT_THAT(evictions[1].victims, ElementsAre(2));
  EXPECT_EQ(sequence.n_evicted(), 4) << "one count for all layers";
}

TEST(Areas, keep_every_sequence_within_the_limit_with_kvcrush_and_upstream_settles_above_it) {
  AreasConfig config = kSmall;
  config.max_tokens = 24;
  config.crush = {.budget_blocks = 2, .anchor = CrushAnchor::kZeros};
  AreasSequence clean = make(config, 4, 60);
  config.upstream = true;
  AreasSequence upstream = make(config, 4, 60);
  for (AreasSequence* sequence : {&clean, &upstream}) EXPECT_THAT(victims_of_pass(*sequence, 60), IsEmpty());
  victims_of_pass(clean, 1);
  victims_of_pass(upstream, 1);
  EXPECT_EQ(clean.n_cached(), 25);
  EXPECT_EQ(upstream.n_cached(), 33) << "two blocks more than the limit says";
}

TEST(Areas, rescue_only_when_something_leaves_and_upstream_rescues_the_same_blocks_with_every_token) {
  AreasConfig config = kSmall;
  config.crush = {.budget_blocks = 1, .anchor = CrushAnchor::kOnes};
  const auto count_rescues = [](AreasSequence& sequence) {
    victims_of_pass(sequence, 60);
    int n_rescues = 0;
    for (int pass = 0; pass < 8; ++pass) {
      EXPECT_TRUE(register_pass(sequence, 1, [](std::int32_t) { return 1.0F; }).ok());
      n_rescues += static_cast<int>(sequence.evict().value().front().rescued.size());
    }
    return n_rescues;
  };
  AreasSequence clean = make(config, 4, 60);
  EXPECT_EQ(count_rescues(clean), 3) << "at 61 tokens, and twice at 20";
  config.upstream = true;
  AreasSequence upstream = make(config, 4, 60);
  EXPECT_EQ(count_rescues(upstream), 8);
}

TEST(Areas, never_activate_a_rescue_of_two_upstream_where_a_short_prompt_grows_block_by_block) {
  AreasConfig config = kSmall;
  config.crush = {.budget_blocks = 2};
  config.upstream = true;
  AreasSequence sequence = make(config, 4, 8);
  victims_of_pass(sequence, 8);
  for (int pass = 0; pass < 40; ++pass) {
    ASSERT_TRUE(register_pass(sequence, 1, [](std::int32_t) { return 1.0F; }).ok());
    EXPECT_THAT(sequence.evict().value().front().rescued, IsEmpty());
    EXPECT_LE(sequence.n_cached(), 19) << "it settles at the limit";
  }
}

TEST(Areas, ask_for_diversity_when_eviction_is_due_and_upstream_asks_when_it_is_not) {
  AreasConfig config = kSmall;
  config.aggregation = Aggregation::kAdaptiveRkv;
  AreasSequence clean = make(config, 4, 18);
  EXPECT_EQ(clean.wanted_diversity(18), 0) << "prefill never evicts";
  victims_of_pass(clean, 18);
  EXPECT_EQ(clean.wanted_diversity(1), 0) << "19 tokens are within the limit";
  victims_of_pass(clean, 1);
  EXPECT_EQ(clean.wanted_diversity(1), 12) << "20 / 4 * 4 - (4 + 4)";
  config.upstream = true;
  AreasSequence upstream = make(config, 4, 16);
  victims_of_pass(upstream, 16);
  EXPECT_EQ(upstream.wanted_diversity(1), 12) << "a block begins, and is counted as if it were full";
  for (int n = 17; n < 20; ++n) EXPECT_THAT(victims_of_pass(upstream, 1), IsEmpty()) << n;
  EXPECT_EQ(upstream.wanted_diversity(1), 0) << "at 20 tokens eviction is due, and it does not ask";
  ASSERT_TRUE(register_pass(upstream, 1, [](std::int32_t) { return 1.0F; }).ok());
  EXPECT_THAT(upstream.evict().status().message(), HasSubstr("diversity of 0 values"));
}

TEST(Areas, keep_what_is_diverse_with_adaptive_rkv) {
  AreasConfig config = kSmall;
  config.aggregation = Aggregation::kAdaptiveRkv;
  config.adaptive.attention_mass = 0.1;  // one block has as much
  AreasSequence sequence = make(config, 4, 19);
  victims_of_pass(sequence, 19);
  ASSERT_TRUE(register_pass(sequence, 1, [](std::int32_t block) { return block == 1 ? 1.0F : 0.5F; }).ok());
  std::vector<float> diversity(3 * 12, 0.0F);
  for (std::size_t i = 0; i < 12; ++i) diversity[12 + i] = -1.0F;  // of the second
  ASSERT_TRUE(sequence.register_diversity(LayerIndex(0), diversity).ok());
  EXPECT_THAT(sequence.evict().value().front().victims, ElementsAre(2));
}

TEST(Areas, refuse_diversity_that_is_missing_wrong_or_twice_and_forget_it_with_every_call) {
  AreasConfig config = kSmall;
  config.aggregation = Aggregation::kAdaptiveRkv;
  AreasSequence sequence = make(config, 4, 18, 2);
  victims_of_pass(sequence, 18);
  const std::vector<float> right(3 * 3 * 4);
  EXPECT_TRUE(sequence.register_diversity(LayerIndex(0), right).ok());
  EXPECT_THAT(sequence.register_diversity(LayerIndex(0), right).message(), HasSubstr("came twice"));
  EXPECT_THAT(victims_of_pass(sequence, 1), IsEmpty()) << "nothing is due, and the call forgets it";
  ASSERT_TRUE(register_pass(sequence, 1, [](std::int32_t) { return 1.0F; }).ok());
  EXPECT_THAT(sequence.evict().status().message(), HasSubstr("layer 0 has diversity of 0 values"));
  ASSERT_TRUE(sequence.register_diversity(LayerIndex(0), right).ok());
  ASSERT_TRUE(sequence.register_diversity(LayerIndex(1), std::span(right).first(35)).ok());
  EXPECT_THAT(sequence.evict().status().message(), HasSubstr("layer 1 has diversity of 35 values, and 3 evictable"));
  EXPECT_EQ(sequence.n_evicted(), 0) << "an error evicts nothing";
  for (const std::int32_t layer : {0, 1}) ASSERT_TRUE(sequence.register_diversity(LayerIndex(layer), right).ok());
  EXPECT_THAT(sequence.evict().value()[1].victims, ElementsAre(3)) << "among equals the lower number stays";
  EXPECT_FALSE(sequence.register_diversity(LayerIndex(2), right).ok());
  EXPECT_FALSE(sequence.register_diversity(LayerIndex(-1), right).ok());
  EXPECT_FALSE(sequence.register_diversity(LayerIndex(0), std::vector<float>{HUGE_VALF}).ok());
}

TEST(Areas, check_sizes_against_blocks_with_the_first_scores) {
  AreasSequence sequence = make({.start_tokens = 4, .recent_tokens = 6, .max_tokens = 16}, 4, 8);
  EXPECT_THAT(register_pass(sequence, 8, [](std::int32_t) { return 1.0F; }).message(), HasSubstr("no multiple"));
  AreasSequence layerless = make(kSmall, 4, 8, 0);
  EXPECT_THAT(layerless.register_scores({.n_scheduled = 8}).message(), HasSubstr("0 layers"));
  EXPECT_FALSE(AreasSequence::make({.start_tokens = 0}, {}, 8).ok());
  EXPECT_FALSE(AreasSequence::make({}, {}, 0).ok());
}

TEST(Areas, refuse_scores_that_cannot_be_and_stay_as_they_were) {
  AreasSequence sequence = make(kSmall, 4, 8, 2);
  const auto refusal = [&](const Scores& scores, std::int32_t n_scheduled) {
    return sequence.register_scores({.n_scheduled = n_scheduled, .scores = scores}).message();
  };
  const std::vector<float> eight(8, 1.0F);
  EXPECT_THAT(refusal({}, 8), HasSubstr("scores of 0 layers, and the model has 2"));
  EXPECT_THAT(refusal({{}, {}}, 8), HasSubstr("layer 0 returned no scores"));
  EXPECT_THAT(refusal({eight, {1.0F}}, 8), HasSubstr("layer 1 has scores of 1 tokens and layer 0 of 8"));
  EXPECT_THAT(refusal({eight, eight}, 0), HasSubstr("a pass of 0 tokens"));
  EXPECT_THAT(refusal({eight, eight}, 7), HasSubstr("the cache holds 7 after this pass"));
  std::vector<float> sick = eight;
  sick[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(refusal({eight, sick}, 8), HasSubstr("layer 1 has a score that is no finite number"));
  EXPECT_EQ(sequence.n_processed(), 0);
  EXPECT_EQ(refusal({eight, eight}, 8), "");
  EXPECT_THAT(refusal({{1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}}, 1), HasSubstr("4 tokens are tracked there"));
  EXPECT_EQ(sequence.n_processed(), 8);
}

TEST(Areas, refuse_more_queries_than_the_window_has_while_it_fills) {
  AreasConfig config = kSmall;
  config.n_window_queries = 8;
  AreasSequence sequence = make(config, 4, 6);
  EXPECT_EQ(sequence.count_next_queries(6), 6);
  victims_of_pass(sequence, 6);
  EXPECT_THAT(register_pass(sequence, 3, [](std::int32_t) { return 1.0F; }).message(),
              AllOf(HasSubstr("3 queries of this pass and 6 before"), HasSubstr("at most 2 tokens")));
  EXPECT_THAT(victims_of_pass(sequence, 2), IsEmpty());
  EXPECT_THAT(victims_of_pass(sequence, 3), IsEmpty()) << "a full window takes passes of any size";
}

TEST(Areas, take_the_short_prompts_that_end_the_original) {
  // The defaults, with which prompts of 33 to 39 tokens end it.
  for (const bool upstream : {false, true}) {
    for (std::int32_t n_prompt = 31; n_prompt <= 41; ++n_prompt) {
      AreasSequence sequence = make({.upstream = upstream}, 32, n_prompt);
      const Status status = register_pass(sequence, n_prompt, [](std::int32_t) { return 1.0F; });
      EXPECT_EQ(status.ok(), !upstream || n_prompt <= 32 || n_prompt >= 40) << n_prompt;
    }
  }
}

TEST(Areas, fill_in_the_blocks_that_a_sparse_pass_did_not_look_at) {
  AreasSequence sequence = make(kSmall, 4, 16);
  const std::vector<std::int32_t> skipped = {0, 2};
  const auto give = [&](std::size_t n, std::span<const std::int32_t> blocks) {
    const Scores scores = {std::vector<float>(n, 1.0F)};
    return sequence.register_scores({.n_scheduled = 16, .scores = scores, .skipped = blocks});
  };
  EXPECT_THAT(give(16, skipped).message(), HasSubstr("16 scores and 8 skipped tokens are 24"));
  for (const std::vector<std::int32_t>& wrong : {std::vector{2, 1}, {1, 1}, {-1, 2}, {1, 4}}) {
    EXPECT_THAT(give(8, wrong).message(), HasSubstr("skips must be full blocks"));
  }
  ASSERT_TRUE(give(8, skipped).ok());
  EXPECT_THAT(sequence.layer(LayerIndex(0)).sums(), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))
      << "pooling reaches the skipped block's tokens from behind";
  AreasConfig config = kSmall;
  config.upstream = true;
  sequence = make(config, 4, 16);
  EXPECT_FALSE(give(16, skipped).ok()) << "the original refuses skips that do not add up too";
}

TEST(Areas, begin_anew_after_a_preemption) {
  AreasSequence sequence = make(kSmall, 4, 30);
  victims_of_pass(sequence, 30);
  victims_of_pass(sequence, 1);
  ASSERT_TRUE(sequence.reset(31).ok());
  EXPECT_EQ(sequence.n_cached(), 0);
  EXPECT_THAT(victims_of_pass(sequence, 31), IsEmpty()) << "computed again from prompt and output, at full size";
  EXPECT_THAT(victims_of_pass(sequence, 1), ElementsAre(1, 2, 3, 4));
  EXPECT_FALSE(sequence.reset(0).ok());
}

TEST(Areas, go_on_from_a_copy_where_tokens_were_taken_back) {
  AreasSequence sequence = make(kSmall, 4, 18);
  victims_of_pass(sequence, 18);
  const AreasSequence before = sequence;
  victims_of_pass(sequence, 5);
  sequence = before;
  EXPECT_EQ(sequence.n_cached(), 18);
  EXPECT_THAT(victims_of_pass(sequence, 1), IsEmpty());
}

TEST(Areas, do_not_evict_where_nothing_is_tracked) {
  AreasSequence sequence = make(kSmall, 4, 3);
  EXPECT_THAT(sequence.evict().value(), IsEmpty()) << "no layer is known before the first scores";
  EXPECT_THAT(victims_of_pass(sequence, 3), IsEmpty());
  EXPECT_THAT(victims_of_pass(sequence, 1), IsEmpty()) << "the start area is all there is";
}

}  // namespace
}  // namespace ebb
