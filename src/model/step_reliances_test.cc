// What rows rely on, as the kernels of every instruction set find it, beside plain float64.
#include "model/step_reliances.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "model/toy_attention.h"

namespace ebb::step_reliances_test {
namespace {

using toy::Layer;
using toy::Session;

// Masses this near to kReliance may be taken for either side of it.
constexpr double kNear = 1e-4;

AttentionShape sharp_shape(std::mt19937& random) {
  const auto pick = [&](std::initializer_list<std::int32_t> values) {
    return values.begin()[random() % values.size()];
  };
  const RowType types[] = {RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0, RowType::kKivi4};
  AttentionShape shape;
  shape.layout.row_type = types[random() % std::size(types)];
  shape.layout.head_dim_k = shape.layout.head_dim_v = pick({32, 64});
  shape.layout.block_size = pick({8, 12, 16, 64, 128});
  shape.n_kv_heads = pick({1, 2});
  shape.n_heads = shape.n_kv_heads * pick({1, 2, 3});
  shape.scale = 0.6F;  // some rows give most of what they have to a few tokens
  shape.window = pick({0, 0, 130});
  return shape;
}

// Slices that rows certainly rely on, and those that they may.
struct Expected {
  std::set<SliceReliance> certain;
  std::set<SliceReliance> possible;
};

Expected find_expected(const Layer& layer, const AttentionShape& shape, const Session& session) {
  const std::int32_t block_size = shape.layout.block_size;
  const std::int32_t n_slice_tokens = StepReliances::slice_tokens(block_size);
  Expected expected;
  for (std::int32_t head = 0; head < shape.n_heads; ++head) {
    const std::vector<TableEntry> table =
        Layer::kept_entries(session, head / (shape.n_heads / shape.n_kv_heads), session.n_tokens);
    for (std::int32_t token = 0; token < session.n_tokens; ++token) {
      std::vector<double> mass(table.size() * to_size(block_size), 0.0);
      (void)layer.reference(session, token, head, &mass, block_size);
      const std::int32_t of = (session.first + token).value() / n_slice_tokens;
      std::map<std::int32_t, double> by_slice;
      for (std::size_t i = 0; i < mass.size(); ++i) {
        const Position position = table[i / to_size(block_size)].begin + static_cast<std::int32_t>(i) % block_size;
        if (position > Position(0)) by_slice[position.value() / n_slice_tokens] += mass[i];
      }
      for (const auto& [on, share] : by_slice) {
        if (on >= of) continue;
        if (share > static_cast<double>(kReliance) - kNear) expected.possible.insert({.of = of, .on = on});
        if (share > static_cast<double>(kReliance) + kNear) expected.certain.insert({.of = of, .on = on});
      }
    }
  }
  return expected;
}

struct World {
  AttentionShape shape;
  Layer layer;
  std::vector<Session> sessions;
};

// Blocks of sessions begin at multiples of their size.
World make_world(std::uint32_t seed, std::int32_t n_tokens, std::int32_t n_blocks_before) {
  std::mt19937 random(seed);
  const AttentionShape shape = sharp_shape(random);
  World world{.shape = shape, .layer = Layer(shape, seed), .sessions = {}};
  world.sessions.push_back(
      world.layer.make_session(n_tokens, Position(n_blocks_before * shape.layout.block_size), 0.2, true));
  return world;
}

std::vector<SliceReliance> found_of(World& world, const toy::Cut& cut, toy::RunOptions options) {
  StepReliances reliances(world.shape.layout.block_size);
  options.reliances = &reliances;
  (void)world.layer.run(world.sessions, {cut}, options);
  return reliances.take();
}

TEST(StepReliances, are_what_float64_finds_in_every_kernel_set_for_any_row_type_holes_and_window) {
  std::size_t n_found = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    World world = make_world(seed, 190, seed % 2 == 0 ? 0 : 40);
    SCOPED_TRACE(fmt::format("seed {}, blocks of {}, {}", seed, world.shape.layout.block_size,
                             row_type_name(world.shape.layout.row_type)));
    const Expected expected = find_expected(world.layer, world.shape, world.sessions[0]);
    const KernelSet before = current_kernel_set();
    for (const KernelSet set : {KernelSet::kPortable, KernelSet::kAvx2, KernelSet::kAvx512}) {
      if (!try_set_kernel_set(set)) continue;
      SCOPED_TRACE(kernel_set_name(set));
      const std::vector<SliceReliance> found = found_of(world, {100, 1, 89}, {.n_threads = 2});
      EXPECT_TRUE(std::ranges::includes(found, expected.certain));
      EXPECT_TRUE(std::ranges::includes(expected.possible, found));
      n_found += found.size();
    }
    ASSERT_TRUE(try_set_kernel_set(before));
  }
  EXPECT_GT(n_found, 1000U) << "too few to say anything";
}

TEST(StepReliances, are_the_same_for_any_threads_frames_and_cut_into_steps) {
  for (std::uint32_t seed = 50; seed < 60; ++seed) {
    World world = make_world(seed, 200, 0);
    const std::vector<SliceReliance> expected = found_of(world, {200}, {});
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(found_of(world, {33, 100, 1, 66}, {.n_threads = 5, .frame_seed = 7}), expected);
    EXPECT_EQ(found_of(world, {200}, {.mass = false}), expected) << "where nobody asks for mass";
  }
}

TEST(StepReliances, change_no_bit_of_the_output_and_are_none_of_the_last_layer) {
  World world = make_world(70, 150, 30);
  StepReliances reliances(world.shape.layout.block_size);
  const toy::Output without = world.layer.run(world.sessions, {{120, 30}}, {.n_threads = 2})[0];
  const toy::Output with = world.layer.run(world.sessions, {{120, 30}}, {.n_threads = 2, .reliances = &reliances})[0];
  EXPECT_EQ(with.out, without.out);
  EXPECT_EQ(with.mass, without.mass);
  EXPECT_FALSE(reliances.take().empty());
  EXPECT_TRUE(found_of(world, {120, 30}, {.last_layer = true, .n_outputs = 30}).empty());
}

TEST(StepReliances, slices_are_whole_parts_of_blocks) {
  for (const auto& [block_size, n] : {std::pair{64, 16}, {16, 16}, {8, 8}, {24, 8}, {12, 12}, {2, 2}, {100, 100}}) {
    EXPECT_EQ(StepReliances::slice_tokens(block_size), n);
  }
}

}  // namespace
}  // namespace ebb::step_reliances_test
