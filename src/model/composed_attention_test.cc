// Composed attention on the CPU backend against a float64 reference, over sessions that grow, lose blocks and branch.
#include "model/composed_attention.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>

#include <ggml.h>
#include <gtest/gtest.h>

#include "model/composed_attention_twin.h"

namespace ebb::composed_attention_test {
namespace {

using World = ComposedWorld;
using Sessions = ComposedTwin;

// Evicts some blocks behind the last one: whole, or in single layers and heads.
void evict_some(Sessions& sessions, const World& world, bool by_head) {
  for (std::int32_t s = 0; s < world.n_sequences; ++s) {
    toy::ToyTables& session = sessions.session(s);
    for (std::int32_t b = 0; b + 1 < session.n_blocks(); ++b) {
      if (!by_head) {
        if (sessions.random()() % 4 == 0) session.evict(BlockIndex(b));
        continue;
      }
      for (std::int32_t l = 0; l < world.n_layers(); ++l) {
        for (std::int32_t h = 0; h < world.n_kv_heads; ++h) {
          if (sessions.random()() % 3 == 0) session.evict(BlockIndex(b), LayerIndex(l), HeadIndex(h));
        }
      }
    }
  }
}

// Prefill in chunks, gaps, evictions and decode; the largest error of all steps.
Sessions::Errors live(Sessions& sessions, const World& world, bool by_head) {
  Sessions::Errors errors;
  const auto step = [&] {
    const auto e = sessions.run_step();
    errors = {.out = std::max(errors.out, e.out), .mass = std::max(errors.mass, e.mass)};
  };
  for (const std::int32_t n_rows : {37, 5, 64, 1}) {
    for (std::int32_t s = 0; s < world.n_sequences; ++s) {
      const auto gap = static_cast<std::int32_t>(sessions.random()() % 2) * (s + 3);
      sessions.add_rows(s, s == 2 ? 3 : n_rows, gap);
    }
    step();
    evict_some(sessions, world, by_head);
  }
  for (std::int32_t i = 0; i < 3; ++i) {
    for (std::int32_t s = 0; s < world.n_sequences; ++s) sessions.add_rows(s, 1);
    step();
  }
  return errors;
}

// f32 all the way: only the order of float32 sums differs. f16 K and V: queries and products are rounded to 11 bits,
// and ggml's CPU kernel sums f16 values in f16. Inputs are standard normal.
constexpr double kBoundF32 = 5e-6;
constexpr double kBoundF16 = 1e-2;

double bound(const World& world) { return world.ops.kv_type == RowType::kF32 ? kBoundF32 : kBoundF16; }

void expect_close(const World& world, bool by_head = false) {
  Sessions sessions(world);
  const auto errors = live(sessions, world, by_head);
  EXPECT_LE(errors.out, bound(world));
  EXPECT_LE(errors.mass, bound(world) * world.group);
}

TEST(ComposedAttention, agrees_with_float64_for_every_row_type_and_kernel) {
  for (const RowType type : {RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0}) {
    for (const bool flash : {true, false}) {
      for (const RowType kv_type : {RowType::kF32, RowType::kF16}) {
        SCOPED_TRACE(std::string(row_type_name(type)) + (flash ? " flash " : " spelled out ") +
                     std::string(row_type_name(kv_type)));
        expect_close({.row_type = type, .ops = {.flash = flash, .kv_type = kv_type}, .n_sequences = 2});
      }
    }
  }
}

TEST(ComposedAttention, agrees_for_one_kv_head_and_for_as_many_as_query_heads) {
  expect_close({.n_kv_heads = 1, .group = 8});
  expect_close({.n_kv_heads = 4, .group = 1, .n_sequences = 2});
  expect_close({.n_kv_heads = 3, .group = 5, .head_dim_k = 24, .head_dim_v = 40, .n_sequences = 3});
}

TEST(ComposedAttention, agrees_where_each_head_and_layer_holds_other_blocks) {
  expect_close({.windows = {0, 0, 0}}, true);
  expect_close({.windows = {0, 0}, .n_sequences = 3, .seed = 2}, true);
  expect_close({.ops = {.flash = false, .kv_type = RowType::kF32}, .windows = {0, 0}, .n_sequences = 2, .seed = 3},
               true);
}

TEST(ComposedAttention, agrees_under_sliding_windows) {
  for (const std::int32_t window : {1, 7, 16, 40}) {
    SCOPED_TRACE(window);
    expect_close({.windows = {window, 0, window}, .n_sequences = 2});
    expect_close({.windows = {0, window}, .seed = 5}, true);
  }
}

TEST(ComposedAttention, gives_the_mass_of_every_block) {
  for (const bool by_head : {false, true}) {
    for (const bool flash : {true, false}) {
      expect_close({.ops = {.flash = flash, .kv_type = RowType::kF32}, .with_mass = true}, by_head);
      expect_close({.ops = {.flash = flash, .kv_type = RowType::kF32},
                    .windows = {0, 20},
                    .n_sequences = 3,
                    .with_mass = true,
                    .seed = 4},
                   by_head);
    }
  }
  expect_close({.n_kv_heads = 4, .group = 1, .with_mass = true});
}

TEST(ComposedAttention, agrees_over_random_shapes) {
  std::mt19937_64 random(99);
  const auto pick = [&](std::initializer_list<std::int32_t> of) {
    return *(of.begin() + static_cast<std::ptrdiff_t>(random() % of.size()));
  };
  for (std::uint64_t i = 0; i < 12; ++i) {
    SCOPED_TRACE(i);
    const World world = {.row_type = static_cast<RowType>(pick({0, 1, 2, 3})),
                         .ops = {.flash = pick({0, 1}) == 1, .kv_type = static_cast<RowType>(pick({0, 1}))},
                         .n_kv_heads = pick({1, 2, 3}),
                         .group = pick({1, 2, 4, 7}),
                         .head_dim_k = pick({32, 64, 96}),
                         .head_dim_v = pick({32, 64}),
                         .block_size = pick({8, 12, 24, 64}),
                         .windows = {0, pick({0, 5, 33})},
                         .n_sequences = pick({1, 2, 3}),
                         .with_mass = pick({0, 1}) == 1,
                         .seed = i};
    expect_close(world, pick({0, 1}) == 1);
  }
}

TEST(ComposedAttention, reuses_one_graph_while_decoding_inside_its_padding) {
  const World world = {.n_sequences = 2};
  Sessions sessions(world);
  for (std::int32_t i = 0; i < 200; ++i) {
    for (std::int32_t s = 0; s < world.n_sequences; ++s) sessions.add_rows(s, 1);
    ASSERT_LE(sessions.run_step().out, kBoundF32) << "step " << i;
  }
  EXPECT_EQ(sessions.n_graphs(), 1);
}

TEST(ComposedAttention, gives_the_same_bits_wherever_frames_lie_and_whether_mass_is_asked) {
  const World world = {.windows = {0, 30}, .n_sequences = 3};
  World elsewhere = world;
  elsewhere.placement_seed = 77;
  World with_mass = world;
  with_mass.windows = {0, 0};  // what windows hide is gathered too when mass is asked
  World without_mass = with_mass;
  with_mass.with_mass = true;
  const auto outputs = [](const World& of) {
    Sessions sessions(of);
    live(sessions, of, true);
    return sessions.outputs();
  };
  EXPECT_EQ(outputs(world), outputs(elsewhere));
  EXPECT_EQ(outputs(with_mass), outputs(without_mass));
}

TEST(ComposedAttention, gives_the_same_bits_after_evict_and_recall) {
  for (const RowType type : {RowType::kF32, RowType::kF16, RowType::kBF16, RowType::kQ8_0}) {
    const World world = {.row_type = type, .windows = {0, 20}};
    Sessions kept(world);
    Sessions recalled(world);
    for (Sessions* sessions : {&kept, &recalled}) {
      sessions->add_rows(0, 70);
      sessions->run_step();
    }
    std::mt19937_64 same_random = kept.random();
    for (const std::int32_t block : {0, 2, 3}) recalled.evict_and_recall(0, BlockIndex(block));
    recalled.random() = same_random;
    for (Sessions* sessions : {&kept, &recalled}) {
      sessions->add_rows(0, 9);
      sessions->run_step();
    }
    EXPECT_EQ(kept.outputs(), recalled.outputs()) << row_type_name(type);
  }
}

TEST(ComposedAttention, stores_rows_where_the_block_table_says_and_nowhere_else) {
  const World world = {.row_type = RowType::kF16, .windows = {0, 0}};
  Sessions sessions(world);
  sessions.add_rows(0, 21);
  sessions.run_step();
  std::vector<bool> in_use(static_cast<std::size_t>(sessions.memory().n_frames()));
  std::vector<std::byte> bytes(world.layout().frame_bytes());
  for (std::int32_t l = 0; l < world.n_layers(); ++l) {
    for (std::int32_t h = 0; h < world.n_kv_heads; ++h) {
      for (const TableEntry& entry : sessions.session(0).table(LayerIndex(l), HeadIndex(h))) {
        in_use[entry.frame.index()] = true;
        sessions.memory().read(entry.frame, bytes);
        const auto* rows = reinterpret_cast<const ggml_fp16_t*>(bytes.data());
        for (std::int32_t i = 0; i < world.block_size * world.head_dim_k; ++i) {
          const std::int32_t slot = i / world.head_dim_k;
          const double expected =
              slot >= entry.n_tokens
                  ? 0.0
                  : sessions.key(
                        {0, l, h, (entry.begin + slot).value()})[static_cast<std::size_t>(i % world.head_dim_k)];
          ASSERT_EQ(static_cast<double>(ggml_fp16_to_fp32(rows[i])), expected) << "slot " << slot;
        }
      }
    }
  }
  for (std::int32_t f = 0; f < sessions.memory().n_frames(); ++f) {
    if (in_use[static_cast<std::size_t>(f)]) continue;
    sessions.memory().read(FrameIndex(f), bytes);
    ASSERT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{}; })) << "frame " << f;
  }
}

TEST(ComposedAttention, chooses_float_kernels_on_the_cpu) {
  const World world;
  Sessions sessions(world);
  const auto ops = choose_composed_ops(sessions.backend(), sessions.layers());
  ASSERT_TRUE(ops.ok());
  EXPECT_TRUE(ops->flash);
  EXPECT_EQ(ops->kv_type, RowType::kF32);
}

TEST(ComposedAttentionDeathTest, refuses_a_step_that_its_graph_was_not_planned_for) {
  const World world;
  Sessions sessions(world);
  sessions.add_rows(0, 2);
  std::unique_ptr<ggml_context, decltype(&ggml_free)> context(
      ggml_init({.mem_size = 64 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}), ggml_free);
  auto memory = std::move(FrameMemory::open(sessions.backend(), world.layout(), 4)).value();
  const AttentionStep step = sessions.make_step();
  ComposedAttention attention(context.get(), *memory,
                              {.plan = plan_composed(step, sessions.layers(), false),
                               .layers = {sessions.layers().begin(), sessions.layers().end()},
                               .ops = {}});
  EXPECT_DEATH(attention.attend(LayerIndex(0), nullptr, false), "attends before it writes");
  AttentionStep longer = step;
  ++longer.sequences[0].n_rows;
  EXPECT_DEATH(attention.fill(longer), "not planned for");
}

}  // namespace
}  // namespace ebb::composed_attention_test
