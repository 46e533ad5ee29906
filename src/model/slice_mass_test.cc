// The mass of slices, as the kernels of every instruction set give it, beside plain float64.
#include "model/slice_mass.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "model/attention_plan.h"
#include "model/toy_attention.h"

namespace ebb::slice_mass_test {
namespace {

using toy::Layer;
using toy::Output;
using toy::RunOptions;
using toy::Session;
using toy::Slices;

// Of a head of one query, as the mass of blocks is (attention_test.cc).
constexpr double kMassBound = 2e-6;
constexpr std::int32_t kAsking = 3;
constexpr std::int32_t kInWindow = 2;

struct World {
  AttentionShape shape;
  std::int32_t n_slices = 1;
};

World random_world(std::mt19937& random) {
  const auto pick = [&](std::initializer_list<std::int32_t> values) {
    return values.begin()[random() % values.size()];
  };
  const RowType types[] = {RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0, RowType::kKivi4};
  World world;
  AttentionShape& shape = world.shape;
  shape.layout.row_type = types[random() % std::size(types)];
  shape.layout.head_dim_k = shape.layout.head_dim_v = pick({32, 64});
  shape.layout.block_size = pick({2, 8, 12, 16, 32, 64, 100, 128});
  shape.n_kv_heads = pick({1, 2});
  shape.n_heads = shape.n_kv_heads * pick({1, 2, 3, 8});
  shape.scale = 1.0F / std::sqrt(static_cast<float>(shape.layout.head_dim_k));
  shape.window = pick({0, 0, 7, 130});
  do world.n_slices = pick({shape.layout.block_size, shape.layout.block_size / 2, 4, 3, 1});
  while (shape.layout.block_size % world.n_slices != 0);
  return world;
}

std::string describe_world(std::uint32_t seed, const World& world) {
  const AttentionShape& shape = world.shape;
  return fmt::format("seed {}: {} heads over {}, dims {}, {} slices of blocks of {}, window {}, {}", seed,
                     shape.n_heads, shape.n_kv_heads, shape.layout.head_dim_k, world.n_slices, shape.layout.block_size,
                     shape.window, row_type_name(shape.layout.row_type));
}

// Every kernel set that this processor has, then the one that was in force.
template <class F>
void for_each_kernel_set(F f) {
  const KernelSet before = current_kernel_set();
  for (const KernelSet set : {KernelSet::kPortable, KernelSet::kAvx2, KernelSet::kAvx512}) {
    if (try_set_kernel_set(set)) f(kernel_set_name(set));
  }
  EXPECT_TRUE(try_set_kernel_set(before));
}

bool same_floats(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

void expect_same_slices(const Output& a, const Output& b, const std::string& what) {
  ASSERT_EQ(a.slices.size(), b.slices.size());
  for (std::size_t i = 0; i < a.slices.size(); ++i) {
    EXPECT_TRUE(same_floats(a.slices[i].sum, b.slices[i].sum)) << what;
    EXPECT_TRUE(same_floats(a.slices[i].window_sum, b.slices[i].window_sum)) << what;
    EXPECT_TRUE(same_floats(a.slices[i].window_max, b.slices[i].window_max)) << what;
    EXPECT_TRUE(same_floats(a.slices[i].last, b.slices[i].last)) << what;
  }
}

// Of one KV head after one step; what it is beside the masses of the step's asking queries, by slice.
void expect_near_reference(const Layer& layer, const World& world, const Session& session, const Slices& actual,
                           std::int32_t kv_head) {
  const std::int32_t group = world.shape.n_heads / world.shape.n_kv_heads;
  const std::size_t n_table = Layer::kept_entries(session, kv_head, session.n_tokens).size() * to_size(world.n_slices);
  std::vector<double> sum(n_table, 0.0);
  std::vector<double> window(n_table, 0.0);
  std::vector<double> most(n_table, 0.0);
  std::vector<double> last;
  for (std::int32_t token = actual.n_tokens - actual.n_asking; token < actual.n_tokens; ++token) {
    last.assign(n_table, 0.0);
    for (std::int32_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      (void)layer.reference(session, token, head, &last, world.n_slices);
    }
    for (std::size_t i = 0; i < n_table; ++i) {
      sum[i] += last[i];
      if (token < actual.n_tokens - kInWindow) continue;
      window[i] += last[i];
      most[i] = std::max(most[i], last[i]);
    }
  }
  const auto expect_near = [&](const std::vector<double>& expected, const std::vector<float>& given, const char* what) {
    ASSERT_LE(given.size(), expected.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(given[i]), expected[i], kMassBound * group * kAsking)
          << what << " of slice " << i;
    }
    for (std::size_t i = given.size(); i < expected.size(); ++i)
      ASSERT_EQ(expected[i], 0.0) << "an entry without slices";
  };
  expect_near(sum, actual.sum, "sum");
  expect_near(window, actual.window_sum, "window sum");
  expect_near(most, actual.window_max, "window maximum");
  expect_near(last, actual.last, "last");
}

TEST(SliceMass, agrees_with_float64_in_every_kernel_set_for_any_row_type_holes_and_window) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const World world = random_world(random);
    SCOPED_TRACE(describe_world(seed, world));
    Layer layer(world.shape, seed);
    const bool even = world.shape.layout.seals() || random() % 2 == 0;
    const std::vector<Session> sessions = {layer.make_session(150, Position(960), 0.2, even)};
    for_each_kernel_set([&](const char* set) {
      SCOPED_TRACE(set);
      const auto output =
          layer.run(sessions, {{1, 100, 48, 1}},
                    {.n_threads = 2, .n_slices = world.n_slices, .n_mass_rows = kAsking, .n_window_rows = kInWindow});
      ASSERT_EQ(output[0].slices.size(), 4U * to_size(world.shape.n_kv_heads));
      for (std::size_t i = 0; i < output[0].slices.size(); ++i) {
        expect_near_reference(layer, world, sessions[0], output[0].slices[i],
                              static_cast<std::int32_t>(i) % world.shape.n_kv_heads);
      }
    });
  }
}

// A block is the sum of its slices: one in floats over slots in order, the other over 16 sums and a tree.
TEST(SliceMass, adds_up_to_the_mass_of_blocks) {
  for (std::uint32_t seed = 100; seed < 120; ++seed) {
    std::mt19937 random(seed);
    const World world = random_world(random);
    SCOPED_TRACE(describe_world(seed, world));
    Layer layer(world.shape, seed);
    const std::vector<Session> sessions = {layer.make_session(90, Position(5), 0.2, true)};
    const Output output =
        layer.run(sessions, {{89, 1}}, {.n_slices = world.n_slices, .n_mass_rows = 1, .n_window_rows = 1})[0];
    const std::size_t stride = output.mass.size() / to_size(90 * world.shape.n_kv_heads);
    for (std::size_t h = 0; h < to_size(world.shape.n_kv_heads); ++h) {
      const Slices& slices = output.slices[to_size(world.shape.n_kv_heads) + h];  // of the second step
      EXPECT_TRUE(same_floats(slices.sum, slices.window_sum)) << "of one query alone";
      for (std::size_t e = 0; e < slices.sum.size() / to_size(world.n_slices); ++e) {
        const double block = output.mass[(to_size(89 * world.shape.n_kv_heads) + h) * stride + e];
        double sum = 0.0;
        for (std::size_t j = 0; j < to_size(world.n_slices); ++j) sum += slices.sum[e * to_size(world.n_slices) + j];
        EXPECT_NEAR(sum, block, 1e-6 * (block + 1e-6)) << "entry " << e;
      }
    }
  }
}

TEST(SliceMass, asking_for_slices_changes_no_bit_of_the_output_nor_of_the_mass_of_blocks) {
  for (std::uint32_t seed = 200; seed < 220; ++seed) {
    std::mt19937 random(seed);
    const World world = random_world(random);
    SCOPED_TRACE(describe_world(seed, world));
    Layer layer(world.shape, seed);
    const std::vector<Session> sessions = {layer.make_session(150, Position(900), 0.2, true),
                                           layer.make_session(60, Position(2), 0.0, true)};
    const std::vector<toy::Cut> cuts = {{120, 29, 1}, {30, 29, 1}};
    const std::vector<Output> without = layer.run(sessions, cuts, {.n_threads = 2});
    const std::vector<Output> with = layer.run(sessions, cuts, {.n_threads = 2, .n_slices = world.n_slices});
    for (std::size_t s = 0; s < sessions.size(); ++s) {
      EXPECT_TRUE(same_floats(with[s].out, without[s].out));
      EXPECT_TRUE(same_floats(with[s].mass, without[s].mass));
    }
  }
}

TEST(SliceMass, gives_the_same_bits_for_any_threads_frames_company_and_kernel_set) {
  for (std::uint32_t seed = 300; seed < 316; ++seed) {
    std::mt19937 random(seed);
    const World world = random_world(random);
    SCOPED_TRACE(describe_world(seed, world));
    Layer layer(world.shape, seed);
    const std::vector<Session> sessions = {layer.make_session(220, Position(900), 0.2, true),
                                           layer.make_session(57, Position(3), 0.0, true)};
    const std::vector<toy::Cut> cuts = {{200, 19, 1}, {37, 19, 1}};
    // All rows ask, so that several tiles give to one slice.
    const RunOptions options{.n_slices = world.n_slices, .n_mass_rows = 200, .n_window_rows = 150};
    const std::vector<Output> expected = layer.run(sessions, cuts, options);
    for_each_kernel_set([&](const char* set) {
      RunOptions other = options;
      other.n_threads = 5;
      other.frame_seed = 77;
      const std::vector<Output> again = layer.run(sessions, cuts, other);
      for (std::size_t s = 0; s < sessions.size(); ++s) expect_same_slices(expected[s], again[s], set);
      const std::vector<Output> alone = layer.run({sessions[1]}, {cuts[1]}, other);
      expect_same_slices(expected[1], alone[0], "company");
    });
  }
}

TEST(SliceMass, gives_members_of_a_cohort_the_bits_of_private_frames) {
  AttentionShape shape;
  shape.layout = {.row_type = RowType::kF16, .block_size = 16, .head_dim_k = 32, .head_dim_v = 32};
  shape.n_kv_heads = 2;
  shape.n_heads = 6;
  shape.scale = 0.2F;
  Layer layer(shape, 9);
  std::vector<Session> sessions = {layer.make_session(120, Position(0), 0.1, true)};
  for (const std::int32_t n : {90, 121, 75}) sessions.push_back(layer.make_fork(sessions[0], 0, 64, n));
  std::vector<toy::Cut> cuts;
  for (const Session& session : sessions) cuts.push_back({session.n_tokens - 2, 1, 1});
  const auto run = [&](bool share) {
    return layer.run(sessions, cuts, {.n_threads = 3, .share = share, .n_slices = 16});
  };
  const std::vector<Output> own = run(false);
  const std::vector<Output> shared = run(true);
  for (std::size_t s = 0; s < sessions.size(); ++s) expect_same_slices(own[s], shared[s], "session");
}

// Of so many blocks that a thread has no room for the slots of a whole tile: tiles have fewer rows.
TEST(SliceMass, of_long_tables_is_that_of_any_threads_and_changes_no_bit_of_the_output) {
  AttentionShape shape;
  shape.layout = {.row_type = RowType::kF16, .block_size = 2, .head_dim_k = 16, .head_dim_v = 16};
  shape.n_kv_heads = 1;
  shape.n_heads = 2;
  shape.scale = 0.25F;
  constexpr std::int32_t kTokens = 12000;
  ASSERT_LT(kMostSlotBytes, kTileRows * kTokens / 2 * to_size(shape.layout.key_stride()) * sizeof(float));
  Layer layer(shape, 3);
  const std::vector<Session> sessions = {layer.make_session(kTokens, Position(0), 0.0, true)};
  const auto run = [&](std::int32_t n_threads, std::int32_t n_slices) {
    return layer.run(sessions, {{kTokens - 70, 70}},
                     {.n_threads = n_threads,
                      .attend_from = kTokens - 70,
                      .n_slices = n_slices,
                      .n_mass_rows = 70,
                      .n_window_rows = 70})[0];
  };
  const Output expected = run(1, 2);
  expect_same_slices(expected, run(3, 2), "threads");
  EXPECT_TRUE(same_floats(expected.out, run(2, 0).out));
  double total = 0.0;
  for (const float x : expected.slices.back().sum) total += static_cast<double>(x);
  EXPECT_NEAR(total, 70.0 * 2.0, 1e-4) << "each query gives one for each head";
}

TEST(SliceMass, rounds_a_mass_to_2_to_the_minus_42) {
  EXPECT_EQ(SliceMass::to_units(0.0F), 0);
  EXPECT_EQ(SliceMass::to_units(1.0F), std::int64_t{1} << 42);
  EXPECT_EQ(SliceMass::to_units(0x1p-42F), 1);
  EXPECT_EQ(SliceMass::to_units(0x1.8p-43F), 1);
  EXPECT_EQ(SliceMass::to_units(0x1p-44F), 0);
  EXPECT_EQ(SliceMass::to_units(510.0F), std::int64_t{510} << 42);
}

}  // namespace
}  // namespace ebb::slice_mass_test
