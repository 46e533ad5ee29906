#include "policy/attention_notes.h"

#include <algorithm>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebb::attention_notes_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr Ask kAll = {.scope = Scope::kHead, .totals = true, .last = true, .window = 2};
constexpr std::int32_t kBlockSize = 4;

std::vector<BlockIndex> blocks(std::initializer_list<std::int32_t> indices) {
  std::vector<BlockIndex> blocks;
  for (const std::int32_t index : indices) blocks.emplace_back(index);
  return blocks;
}

// One query at a position gives blocks this in one head.
void observe(AttentionNotes& notes, std::int32_t position, const std::vector<BlockIndex>& hot,
             const std::vector<float>& mass) {
  notes.begin_step({.observed = {Position(position), Position(position + 1)}, .n_window = 1}, kBlockSize);
  notes.add(0, {.blocks = hot, .sum = mass, .window_sum = mass, .window_max = mass, .last = mass});
}

TEST(AttentionNotes, add_up_all_queries_and_look_back_over_a_window) {
  AttentionNotes notes(1, kAll);
  observe(notes, 8, blocks({0, 1}), {1.0F, 4.0F});
  observe(notes, 9, blocks({0, 1}), {2.0F, 0.5F});
  observe(notes, 10, blocks({0, 2}), {3.0F, 0.25F});
  const auto noted = notes.noted(0, blocks({0, 1, 2, 3}));
  ASSERT_THAT(noted, SizeIs(4));
  EXPECT_EQ(noted[0].total, 6.0);
  EXPECT_EQ(noted[0].n_queries, 3.0);
  EXPECT_EQ(noted[0].window_sum, 5.0);
  EXPECT_EQ(noted[0].window_max, 3.0);
  EXPECT_EQ(noted[0].last, 3.0);
  EXPECT_EQ(noted[1].total, 4.5) << "of a block that left too";
  EXPECT_EQ(noted[1].window_sum, 0.5);
  EXPECT_EQ(noted[1].last, 0.0);
  EXPECT_EQ(noted[1].n_in_window, 1);
  EXPECT_EQ(noted[2].n_queries, 1.0);
  EXPECT_EQ(noted[3].n_in_window, 0);
}

TEST(AttentionNotes, count_the_queries_that_could_see_a_block) {
  AttentionNotes notes(1, kAll);
  notes.begin_step({.observed = {Position(0), Position(10)}, .n_window = 2}, kBlockSize);
  const std::vector<float> mass(3, 1.0F);
  notes.add(0, {.blocks = blocks({0, 1, 2}), .sum = mass, .window_sum = mass, .window_max = mass, .last = mass});
  const auto noted = notes.noted(0, blocks({0, 1, 2}));
  EXPECT_EQ(noted[0].n_queries, 10.0);
  EXPECT_EQ(noted[1].n_queries, 6.0);
  EXPECT_EQ(noted[2].n_queries, 2.0);
}

TEST(AttentionNotes, queries_that_the_next_step_pushes_out_of_the_window_are_not_observed) {
  struct Case {
    Ask ask;
    AttentionNotes::Behind behind;
    std::int32_t expected;
  };
  const Ask window{.window = 32};
  const Ask last{.last = true};
  const Ask shares{.shares = true};
  const Ask pooled{.totals = true, .prompt_window = 64};
  for (const Case& c : {
           Case{window, {}, 32},
           Case{window, {.n_tokens = 500}, 32},
           Case{window, {.n_tokens = 500, .n_next_queries = 31}, 32},
           Case{window, {.n_tokens = 500, .n_next_queries = 32}, 0},
           Case{last, {.n_tokens = 500}, 1},
           Case{last, {.n_tokens = 500, .n_next_queries = 1}, 0},
           Case{{.last = true, .window = 2}, {.n_tokens = 500, .n_next_queries = 1}, 2},
           // All of these count from step to step.
           Case{shares, {.n_tokens = 500, .n_next_queries = 100}, 16},
           Case{{.shares = true, .window = 32}, {.n_tokens = 500, .n_next_queries = 100}, 32},
           Case{{.totals = true}, {.n_tokens = 500, .n_next_queries = 100}, 100},
           Case{kAll, {.n_tokens = 500, .n_next_queries = 100}, 100},
           Case{pooled, {.n_tokens = 500, .n_next_queries = 100}, 0},
           Case{pooled, {.n_tokens = 24, .n_next_queries = 24}, 40},
           Case{{.reread = true}, {.n_tokens = 500}, 0},
       }) {
    EXPECT_EQ(AttentionNotes(4, c.ask).n_observed(100, c.behind), c.expected)
        << c.behind.n_tokens << " behind, " << c.behind.n_next_queries << " next";
  }
  EXPECT_EQ(AttentionNotes(4, window).n_observed(7, {}), 7);
}

TEST(AttentionNotes, what_came_since_the_window_counts_as_the_others_do_on_average) {
  AttentionNotes notes(1, kAll);
  observe(notes, 8, blocks({0, 1}), {1.0F, 3.0F});
  ScopeEvidence scope;
  notes.fill(kAll, 0, 1, blocks({0, 1, 2}), scope);
  EXPECT_THAT(scope.window_mean, ElementsAre(1.0, 3.0, 2.0));
  EXPECT_THAT(scope.last, ElementsAre(1.0, 3.0, 2.0));
  EXPECT_THAT(scope.total, ElementsAre(1.0, 3.0, 0.0));
}

TEST(AttentionNotes, forget_what_a_cut_removes_though_its_number_is_used_again) {
  AttentionNotes notes(1, kAll);
  observe(notes, 8, blocks({0, 1, 2}), {1.0F, 4.0F, 5.0F});
  notes.forget(BlockIndex(1));
  const auto noted = notes.noted(0, blocks({0, 1, 2}));
  EXPECT_EQ(noted[0].total, 1.0);
  for (const std::size_t i : {1UL, 2UL}) {
    EXPECT_EQ(noted[i].total, 0.0);
    EXPECT_EQ(noted[i].n_in_window, 0);
  }
}

TEST(AttentionNotes, come_back_from_their_image) {
  AttentionNotes notes(1, kAll);
  observe(notes, 8, blocks({0, 1}), {1.0F, 4.0F});
  observe(notes, 9, blocks({0, 1}), {2.0F, 0.5F});
  const AttentionImage image = notes.image();
  AttentionNotes again(1, kAll);
  ASSERT_TRUE(again.restore(image, 2).ok());
  const auto before = notes.noted(0, blocks({0, 1}));
  const auto after = again.noted(0, blocks({0, 1}));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(after[i].total, before[i].total);
    EXPECT_EQ(after[i].n_queries, before[i].n_queries);
    EXPECT_EQ(after[i].window_sum, before[i].window_sum);
    EXPECT_EQ(after[i].window_max, before[i].window_max);
    EXPECT_EQ(after[i].last, before[i].last);
    EXPECT_EQ(after[i].n_in_window, before[i].n_in_window);
  }
  AttentionNotes nothing_asked(1, {});
  EXPECT_TRUE(nothing_asked.restore(image, 2).ok());
  EXPECT_THAT(nothing_asked.image().entries, SizeIs(0));
}

TEST(AttentionNotes, refuse_an_image_that_no_session_writes) {
  const AttentionImage::Entry good{.head = 0, .block = 1, .total = 1.0F, .n_queries = 2.0F, .n_in_window = 1};
  const auto refused = [](const std::vector<AttentionImage::Entry>& entries) {
    return AttentionNotes(2, kAll).restore({.entries = entries}, 3);
  };
  EXPECT_TRUE(refused({good}).ok());
  EXPECT_EQ(refused({good, good}).code(), Code::kDamaged) << "twice";
  for (const auto& change : std::vector<void (*)(AttentionImage::Entry&)>{
           [](auto& e) { e.head = 2; }, [](auto& e) { e.head = -1; }, [](auto& e) { e.block = 3; },
           [](auto& e) { e.block = -1; }, [](auto& e) { e.total = std::numeric_limits<float>::quiet_NaN(); },
           [](auto& e) { e.window_sum = -1.0F; }, [](auto& e) { e.last = std::numeric_limits<float>::infinity(); },
           [](auto& e) { e.n_queries = 1e20F; }, [](auto& e) { e.n_in_window = -1; }}) {
    AttentionImage::Entry entry = good;
    change(entry);
    EXPECT_THAT(refused({entry}).message(), HasSubstr("that no session writes"));
  }
}

// What a session noted by head before it was told to pool: as if one step had given it.
TEST(AttentionNotes, pool_totals_that_were_noted_by_head) {
  constexpr Ask kByHead = {.scope = Scope::kHead, .totals = true, .slice = 2};
  constexpr Ask kPooled = {.scope = Scope::kLayer, .totals = true, .pool_ahead = 4, .slice = 2};
  AttentionNotes by_head(2, kByHead, kBlockSize, 2);
  AttentionNotes pooled(2, kPooled, kBlockSize, 2);
  for (auto* notes : {&by_head, &pooled}) {
    notes->begin_step({.observed = {Position(12), Position(13)}}, kBlockSize);
    const std::vector<float> sums = {2.0F, 8.0F, 1.0F};
    const std::vector<float> slices = {0, 2, 8, 0, 1, 0};
    notes->add(0, {.blocks = blocks({0, 1, 2}), .sum = sums, .slices = {.sum = slices}});
    const std::span<const float> few(slices);
    notes->add(1, {.blocks = blocks({0, 1}), .sum = std::span(sums).first(2), .slices = {.sum = few.subspan(2)}});
  }
  EXPECT_FALSE(by_head.image().is_pooled);
  AttentionNotes again(2, kPooled, kBlockSize, 2);
  ASSERT_TRUE(again.restore(by_head.image(), 4).ok());
  ScopeEvidence expected;
  ScopeEvidence scope;
  pooled.fill(kPooled, 0, 2, blocks({0, 1, 2}), expected);
  again.fill(kPooled, 0, 2, blocks({0, 1, 2}), scope);
  EXPECT_EQ(scope.slices.total, expected.slices.total);
  EXPECT_EQ(scope.slices.n_queries, expected.slices.n_queries);
  EXPECT_EQ(scope.total, expected.total);
  EXPECT_GT(scope.slices.total[0], 0.0);
  // The other way nothing is known of heads.
  AttentionNotes heads(2, kByHead, kBlockSize, 2);
  ASSERT_TRUE(heads.restore(pooled.image(), 4).ok());
  ScopeEvidence of_head;
  heads.fill(kByHead, 0, 1, blocks({0, 1, 2}), of_head);
  EXPECT_THAT(of_head.total, ElementsAre(0, 0, 0));
}

// Two layers of two heads, in blocks of two slices of two tokens, of which the second head lacks one.
TEST(AttentionNotes, pool_each_step_of_a_layers_heads_together) {
  constexpr Ask kPooled = {.scope = Scope::kLayer, .totals = true, .pool_ahead = 4, .slice = 2};
  AttentionNotes notes(4, kPooled, kBlockSize, 2);
  for (std::int32_t step = 0; step < 2; ++step) {
    notes.begin_step({.observed = {Position(12 + step), Position(13 + step)}}, kBlockSize);
    for (std::size_t head = 0; head < 4; ++head) {
      const bool is_second = head % 2 == 1;
      const std::vector<BlockIndex> hot = is_second ? blocks({0, 3}) : blocks({0, 1, 3});
      // The largest slice of the second step is another one.
      std::vector<float> slices = is_second ? std::vector<float>{1, 0, 4, 0} : std::vector<float>{0, 2, 8, 0, 1, 0};
      if (step == 1) std::ranges::reverse(slices);
      const std::vector<float> sums(hot.size(), 0.0F);
      notes.add(head, {.blocks = hot, .sum = sums, .slices = {.sum = slices}});
    }
  }
  ScopeEvidence scope;
  notes.fill(kPooled, 2, 2, blocks({0, 1, 3}), scope);
  // First 1 2 8 0 5 0, pooled 2 8 8 5 5 0; then 0 5 0 8 2 1, pooled 5 5 8 8 2 1.
  EXPECT_THAT(scope.slices.total, ElementsAre(7, 13, 16, 13, 7, 1));
  EXPECT_THAT(scope.slices.n_queries, ElementsAre(2, 2, 2, 2, 2, 0));
  EXPECT_THAT(scope.total, ElementsAre(20, 29, 8));
  AttentionNotes again(4, kPooled, kBlockSize, 2);
  ASSERT_TRUE(again.restore(notes.image(), 4).ok());
  ScopeEvidence restored;
  again.fill(kPooled, 2, 2, blocks({0, 1, 3}), restored);
  EXPECT_EQ(restored.slices.total, scope.slices.total);
  EXPECT_EQ(restored.total, scope.total);
}

}  // namespace
}  // namespace ebb::attention_notes_test
