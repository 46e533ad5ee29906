#include "model/attention_cohorts.h"

#include <algorithm>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "model/attention_plan.h"
#include "model/toy_attention.h"

namespace ebb {
namespace {

using toy::Cut;
using toy::Layer;
using toy::Output;
using toy::Session;

// Tables of blocks of 64 tokens in the given frames, one layer and one head.
struct ToyStep {
  explicit ToyStep(const std::vector<std::vector<std::int32_t>>& frames) {
    step.n_layers = 1;
    step.n_kv_heads = 1;
    for (const std::vector<std::int32_t>& of_one : frames) {
      std::vector<TableEntry>& table = tables.emplace_back();
      for (const std::int32_t frame : of_one) {
        table.push_back({FrameIndex(frame), Position(64 * static_cast<std::int32_t>(table.size())), 64});
      }
      const Position last(64 * static_cast<std::int32_t>(table.size()) - 1);
      step.sequences.push_back({static_cast<std::int32_t>(step.sequences.size()), 1, last});
    }
    step.tables.assign(tables.begin(), tables.end());
  }

  std::vector<std::vector<TableEntry>> tables;
  AttentionStep step;
};

std::vector<std::vector<std::size_t>> find_cohorts(const AttentionStep& step, std::int32_t most) {
  Cohorts cohorts;
  cohorts.find(step, most);
  std::vector<std::vector<std::size_t>> found;
  for (std::size_t c = 0; c < cohorts.size(); ++c) {
    found.emplace_back(cohorts[c].begin(), cohorts[c].end());
    std::ranges::sort(found.back());
  }
  std::ranges::sort(found);
  return found;
}

using Found = std::vector<std::vector<std::size_t>>;

TEST(Cohorts, are_sequences_whose_tables_begin_in_the_same_frames) {
  const ToyStep toy({{1, 2, 10}, {3, 4, 11}, {1, 2, 12}, {3, 4, 13}, {14, 15}});
  EXPECT_EQ(find_cohorts(toy.step, 8), (Found{{0, 2}, {1, 3}, {4}}));
}

TEST(Cohorts, are_no_larger_than_asked) {
  const ToyStep toy({{1, 10}, {1, 11}, {1, 12}, {1, 13}, {1, 14}});
  EXPECT_EQ(find_cohorts(toy.step, 1).size(), 5U);
  EXPECT_EQ(find_cohorts(toy.step, 2).size(), 3U);
  EXPECT_EQ(find_cohorts(toy.step, 5).size(), 1U);
}

TEST(Cohorts, take_nobody_who_leaves_the_others_with_less_in_common_than_it_brings) {
  const ToyStep toy({{1, 2, 3, 4, 10}, {1, 2, 3, 4, 11}, {1, 12}});
  EXPECT_EQ(find_cohorts(toy.step, 8), (Found{{0, 1}, {2}}));
}

TEST(Cohorts, leave_sequences_of_several_rows_alone) {
  ToyStep toy({{1, 2, 10}, {1, 2, 11}, {1, 2, 12}});
  toy.step.sequences[1].n_rows = 2;
  EXPECT_EQ(find_cohorts(toy.step, 8), (Found{{0, 2}, {1}}));
}

std::int32_t count_shared(const AttentionStep& step, std::int32_t window) {
  AttentionShape shape;
  shape.layout = {.head_dim_k = 16, .head_dim_v = 16};
  shape.n_heads = shape.n_kv_heads = 1;
  shape.window = window;
  Cohorts cohorts;
  cohorts.find(step, 8);
  const AttentionPlan plan = make_plan(shape, step, cohorts, LayerIndex(0), 1);
  TileCursor cursor(shape, step, cohorts, LayerIndex(0), plan);
  EXPECT_TRUE(cursor.seek(0));
  return cursor.tile().n_shared;
}

TEST(Cohorts, share_what_all_see_wholly_and_nothing_else) {
  ToyStep toy({{1, 2, 3, 10}, {1, 2, 3, 11}});
  EXPECT_EQ(count_shared(toy.step, 0), 3);
  EXPECT_EQ(count_shared(toy.step, 256), 3);
  // The window hides the first token.
  EXPECT_EQ(count_shared(toy.step, 255), 0);
  // A position within a block that others have.
  toy.step.sequences[0].first = Position(140);
  EXPECT_EQ(count_shared(toy.step, 0), 2);
}

class SharedFrames : public testing::TestWithParam<RowType> {
 protected:
  void SetUp() override {
    shape_.layout = {.row_type = GetParam(), .block_size = 16, .head_dim_k = 32, .head_dim_v = 32};
    shape_.n_kv_heads = 2;
    shape_.scale = 0.2F;
  }

  // Decoding sessions, forks of two and two that share nothing, beside a prompt. What forks of the first share crosses a
  // border of splits. With one thread there are tiles enough that none is split.
  void make_sessions(Layer& layer) {
    sessions_ = {layer.make_session(84, Position(976), 0.2, true), layer.make_session(84, Position(8), 0.0, true),
                 layer.make_session(84, Position(8), 0.0, true), layer.make_session(84, Position(976), 0.0, false)};
    cuts_.assign(4, {81, 1, 1, 1});
    for (std::size_t i = 0; i < 20; ++i) {
      const std::int32_t n_tokens = 70 + 3 * static_cast<std::int32_t>(i % 6);
      sessions_.push_back(layer.make_fork(sessions_[i % 2], i % 2, i % 5 == 0 ? 32 : 64, n_tokens));
      cuts_.push_back({n_tokens - 3, 1, 1, 1});
    }
    sessions_.push_back(layer.make_session(60, Position(3), 0.0, true));
    cuts_.push_back({20, 7, 30, 3});
  }

  void expect_same_bits(const Layer& layer, std::int32_t n_threads, bool mass) {
    const auto run = [&](bool share) {
      return layer.run(sessions_, cuts_, {.n_threads = n_threads, .mass = mass, .share = share});
    };
    const std::vector<Output> own = run(false);
    const std::vector<Output> shared = run(true);
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return std::ranges::equal(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
    };
    for (std::size_t s = 0; s < own.size(); ++s) {
      EXPECT_TRUE(same(own[s].out, shared[s].out)) << "output of session " << s << ", " << n_threads << " threads";
      EXPECT_TRUE(same(own[s].mass, shared[s].mass)) << "mass of session " << s << ", " << n_threads << " threads";
    }
  }

  AttentionShape shape_;
  std::vector<Session> sessions_;
  std::vector<Cut> cuts_;
};

TEST_P(SharedFrames, give_the_bits_of_private_ones_in_every_kernel_set) {
  const KernelSet before = current_kernel_set();
  for (const KernelSet set : {KernelSet::kPortable, KernelSet::kAvx2, KernelSet::kAvx512}) {
    if (!try_set_kernel_set(set)) continue;
    for (const std::int32_t group : {1, 2, 3, 5}) {
      shape_.n_heads = group * shape_.n_kv_heads;
      Layer layer(shape_, 31);
      make_sessions(layer);
      SCOPED_TRACE(std::string(kernel_set_name(set)) + ", " + std::to_string(group) + " heads in a group");
      for (const bool mass : {false, true}) expect_same_bits(layer, 2, mass);
    }
  }
  EXPECT_TRUE(try_set_kernel_set(before));
}

TEST_P(SharedFrames, give_the_bits_of_private_ones_for_any_threads_and_window) {
  shape_.n_heads = 4;
  for (const std::int32_t window : {0, 20, 75}) {
    shape_.window = window;
    Layer layer(shape_, 32);
    make_sessions(layer);
    SCOPED_TRACE("window " + std::to_string(window));
    for (const std::int32_t n_threads : {1, 2, 3, 5}) expect_same_bits(layer, n_threads, true);
  }
}

INSTANTIATE_TEST_SUITE_P(RowTypes, SharedFrames,
                         testing::Values(RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0, RowType::kKivi4),
                         [](const auto& type) { return std::string(row_type_name(type.param)); });

}  // namespace
}  // namespace ebb
