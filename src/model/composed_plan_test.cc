#include "model/composed_plan.h"

#include <deque>

#include <gtest/gtest.h>

namespace ebb {
namespace {

constexpr std::int32_t kBlock = 64;

// A step whose tables are written out by hand: begins of blocks, all full.
struct HandmadeStep {
  AttentionStep step;
  std::deque<std::vector<TableEntry>> tables;
  std::vector<AttentionShape> layers;

  HandmadeStep(std::int32_t n_layers, std::int32_t n_kv_heads) {
    step.n_layers = n_layers;
    step.n_kv_heads = n_kv_heads;
    layers.resize(static_cast<std::size_t>(n_layers));
    for (AttentionShape& shape : layers) shape.layout.block_size = kBlock;
  }

  // A sequence whose rows are the last n_rows positions of `begins`' last block, in every layer and head.
  void add_sequence(std::int32_t n_rows, const std::vector<std::int32_t>& begins) {
    const std::int32_t row_begin =
        step.sequences.empty() ? 0 : step.sequences.back().row_begin + step.sequences.back().n_rows;
    step.sequences.push_back(
        {.row_begin = row_begin, .n_rows = n_rows, .first = Position(begins.back() + kBlock - n_rows)});
    for (std::int32_t t = 0; t < step.n_layers * step.n_kv_heads; ++t) step.tables.push_back(table(begins));
  }
  void set_table(std::int32_t sequence, std::int32_t layer, std::int32_t head,
                 const std::vector<std::int32_t>& begins) {
    step.tables[static_cast<std::size_t>((sequence * step.n_layers + layer) * step.n_kv_heads + head)] = table(begins);
  }
  ComposedPlan plan(bool with_mass = false) const { return plan_composed(step, layers, with_mass); }
  bool served_by(const ComposedPlan& plan) const { return plan.serves(step, layers); }

 private:
  BlockTable table(const std::vector<std::int32_t>& begins) {
    std::vector<TableEntry>& entries = tables.emplace_back();
    for (const std::int32_t begin : begins) {
      entries.push_back({.frame = FrameIndex(next_frame_++), .begin = Position(begin), .n_tokens = kBlock});
    }
    return entries;
  }
  std::int32_t next_frame_ = 0;
};

std::vector<std::int32_t> blocks(std::int32_t n) {
  std::vector<std::int32_t> begins;
  for (std::int32_t b = 0; b < n; ++b) begins.push_back(b * kBlock);
  return begins;
}

TEST(ComposedPlan, puts_neighbours_with_equally_many_rows_into_one_bundle) {
  HandmadeStep step(1, 1);
  for (const std::int32_t n_rows : {1, 1, 1, 30, 1}) step.add_sequence(n_rows, blocks(1));
  const std::vector<ComposedPlan::Bundle> expected = {
      {.first_sequence = 0, .n_sequences = 3, .first_row = 0, .n_rows = 1},
      {.first_sequence = 3, .n_sequences = 1, .first_row = 3, .n_rows = 30},
      {.first_sequence = 4, .n_sequences = 1, .first_row = 33, .n_rows = 1}};
  EXPECT_EQ(step.plan().bundles, expected);
}

TEST(ComposedPlan, shares_one_mask_among_layers_that_see_the_same) {
  HandmadeStep step(4, 2);
  step.layers[1].window = step.layers[3].window = 100;
  step.add_sequence(1, blocks(9));
  const ComposedPlan plan = step.plan();
  EXPECT_EQ(plan.mask_of_layer, (std::vector<std::int32_t>{0, 1, 0, 1}));
  EXPECT_TRUE(plan.masks[0].heads_alike && plan.masks[1].heads_alike);
  EXPECT_EQ(plan.masks[0].n_entries, std::vector<std::int32_t>{12});
  EXPECT_EQ(plan.masks[1].n_entries, std::vector<std::int32_t>{4});
}

TEST(ComposedPlan, tells_heads_and_layers_apart_that_hold_other_blocks) {
  HandmadeStep step(3, 2);
  step.add_sequence(1, blocks(6));
  step.set_table(0, 1, 1, {0, 128, 192, 320});
  step.set_table(0, 2, 0, {0, 320});
  step.set_table(0, 2, 1, {0, 320});
  const ComposedPlan plan = step.plan();
  EXPECT_EQ(plan.mask_of_layer, (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_TRUE(plan.masks[0].heads_alike);
  EXPECT_FALSE(plan.masks[1].heads_alike);
  EXPECT_TRUE(plan.masks[2].heads_alike);
  EXPECT_EQ(plan.masks[2].n_entries, std::vector<std::int32_t>{4});
}

TEST(ComposedPlan, tells_tables_apart_whose_blocks_are_not_equally_long) {
  HandmadeStep step(2, 1);
  step.add_sequence(1, blocks(3));
  step.tables.back()[1].n_tokens = kBlock - 1;
  EXPECT_EQ(step.plan().masks.size(), 2U);
}

TEST(ComposedPlan, gathers_only_what_the_window_reaches_unless_mass_is_asked) {
  HandmadeStep step(1, 1);
  step.layers[0].window = 65;
  step.add_sequence(1, blocks(8));  // the row is position 511; 447 is the oldest it sees
  const ComposedPlan plan = step.plan();
  const BlockTable gathered = plan.gathered(step.step, 0, LayerIndex(0), HeadIndex(0));
  ASSERT_EQ(gathered.size(), 2U);
  EXPECT_EQ(gathered.front().begin, Position(384));
  EXPECT_EQ(step.plan(true).gathered(step.step, 0, LayerIndex(0), HeadIndex(0)).size(), 8U);

  step.layers[0].window = 64;
  EXPECT_EQ(step.plan().gathered(step.step, 0, LayerIndex(0), HeadIndex(0)).size(), 1U);
}

TEST(ComposedPlan, gives_all_bundles_one_length_when_mass_is_asked) {
  HandmadeStep step(1, 1);
  step.add_sequence(1, blocks(9));
  step.add_sequence(5, blocks(2));
  EXPECT_EQ(step.plan().masks[0].n_entries, (std::vector<std::int32_t>{12, 4}));
  EXPECT_EQ(step.plan(true).masks[0].n_entries, (std::vector<std::int32_t>{12, 12}));
}

TEST(ComposedPlan, pads_columns_to_their_group_for_every_block_size) {
  for (std::int32_t block_size = 8; block_size <= 128; ++block_size) {
    HandmadeStep step(1, 1);
    step.layers[0].layout.block_size = block_size;
    step.add_sequence(1, blocks(3));
    const std::int32_t n_entries = step.plan().masks[0].n_entries[0];
    EXPECT_EQ(n_entries * block_size % kColumnGroup, 0) << block_size;
    EXPECT_GE(n_entries, 3);
  }
}

TEST(ComposedPlan, serves_steps_that_fit_its_padding) {
  HandmadeStep planned(2, 2);
  planned.add_sequence(1, blocks(3));
  const ComposedPlan plan = planned.plan();
  EXPECT_TRUE(planned.served_by(plan));

  HandmadeStep grown(2, 2);
  grown.add_sequence(1, blocks(4));
  EXPECT_TRUE(grown.served_by(plan));
  HandmadeStep outgrown(2, 2);
  outgrown.add_sequence(1, blocks(5));
  EXPECT_FALSE(outgrown.served_by(plan));
}

TEST(ComposedPlan, does_not_serve_another_batch) {
  HandmadeStep planned(1, 1);
  planned.add_sequence(1, blocks(1));
  planned.add_sequence(1, blocks(1));
  HandmadeStep one_sequence(1, 1);
  one_sequence.add_sequence(2, blocks(1));
  EXPECT_FALSE(one_sequence.served_by(planned.plan()));
  EXPECT_FALSE(planned.served_by(one_sequence.plan()));
}

TEST(ComposedPlan, does_not_serve_heads_or_layers_that_have_parted) {
  HandmadeStep alike(2, 2);
  alike.add_sequence(1, blocks(3));
  HandmadeStep heads_parted(2, 2);
  heads_parted.add_sequence(1, blocks(3));
  heads_parted.set_table(0, 1, 1, {0, 128});
  EXPECT_FALSE(heads_parted.served_by(alike.plan()));
  HandmadeStep layers_parted(2, 2);
  layers_parted.add_sequence(1, blocks(3));
  layers_parted.set_table(0, 1, 0, {0, 128});
  layers_parted.set_table(0, 1, 1, {0, 128});
  EXPECT_FALSE(layers_parted.served_by(alike.plan()));
  // The finer plan serves both.
  EXPECT_TRUE(alike.served_by(heads_parted.plan()));
}

TEST(ComposedPlan, does_not_serve_another_window) {
  HandmadeStep step(1, 1);
  step.add_sequence(1, blocks(3));
  const ComposedPlan plan = step.plan();
  step.layers[0].window = 64;
  EXPECT_FALSE(step.served_by(plan));
}

TEST(ComposedPlanDeathTest, refuses_rows_with_gaps_and_tables_without_the_rows) {
  HandmadeStep step(1, 1);
  step.add_sequence(1, blocks(1));
  step.step.sequences[0].row_begin = 3;
  EXPECT_DEATH((void)step.plan(), "1 rows from 3");
  step.step.sequences[0].row_begin = 0;
  step.set_table(0, 0, 0, {});
  EXPECT_DEATH((void)step.plan(), "no entry that holds them");
}

}  // namespace
}  // namespace ebb
