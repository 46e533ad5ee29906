#include "model/square_choice.h"

#include <cstring>

#include <gtest/gtest.h>

#include "model/toy_attention.h"

namespace ebb::square_choice_test {
namespace {

using toy::Cut;
using toy::Layer;
using toy::Output;
using toy::RunOptions;
using toy::Session;

constexpr Position kBegin(0);

struct Case {
  RowType type;
  std::int32_t n_heads, n_kv_heads, head_dim, block_size, stride, n_tokens;
  double threshold;
  double drop_chance;
};

const Case kCases[] = {
    {RowType::kF32, 3, 3, 16, 16, 8, 300, 0.5, 0.0},     {RowType::kF16, 4, 2, 64, 64, 8, 700, 0.4, 0.0},
    {RowType::kF16, 6, 1, 17, 32, 4, 331, 0.7, 0.3},     {RowType::kBF16, 2, 2, 40, 16, 16, 257, 0.3, 0.2},
    {RowType::kQ8_0, 8, 2, 64, 32, 8, 400, 0.5, 0.2},    {RowType::kKivi4, 4, 2, 64, 64, 8, 500, 0.5, 0.2},
    {RowType::kKivi4, 9, 1, 80, 32, 2, 400, 0.5, 0.0},   {RowType::kF32, 2, 1, 128, 128, 8, 900, 0.2, 0.3},
    {RowType::kF16, 16, 1, 32, 48, 16, 500, 0.35, 0.25}, {RowType::kQ8_0, 3, 3, 96, 8, 2, 130, 0.6, 0.1},
};

class SquareChoices : public ::testing::TestWithParam<Case> {
 protected:
  static AttentionShape make_shape(const Case& about) {
    AttentionShape shape;
    shape.layout = {.row_type = about.type,
                    .block_size = about.block_size,
                    .head_dim_k = about.head_dim,
                    .head_dim_v = about.head_dim};
    shape.n_heads = about.n_heads;
    shape.n_kv_heads = about.n_kv_heads;
    shape.scale = 1.0F / std::sqrt(static_cast<float>(about.head_dim));
    return shape;
  }

  // Of rows before it, blocks may be dropped.
  static Position sparse_begin(const Case& about) {
    return Position(about.drop_chance == 0.0 ? 0 : about.n_tokens / 3 / about.block_size * about.block_size);
  }

  // All rows but those of the last two blocks, and those whose blocks may be dropped.
  static Sight make_sight(const Case& about) {
    const std::int32_t n_sparse = (about.n_tokens / about.block_size - 1) * about.block_size;
    return {.where = {sparse_begin(about), Position(n_sparse)},
            .squares = {.threshold = about.threshold, .stride = about.stride},
            .block_size = about.block_size};
  }

  static Cut whole_blocks(const Case& about, std::int32_t n_blocks) {
    Cut cut;
    for (std::int32_t done = 0; done < about.n_tokens; done += cut.back()) {
      cut.push_back(std::min(n_blocks * about.block_size, about.n_tokens - done));
    }
    return cut;
  }

  // The definition, in float64: the sums of the squares of one block of rows with all keys at or before it.
  static std::vector<double> weigh(const Case& about, const AttentionShape& shape, const Layer& layer,
                                   const Session& session, std::int32_t kv_head, std::int32_t row_begin,
                                   const std::vector<TableEntry>& table) {
    std::vector<double> squares;
    for (const TableEntry& entry : table) {
      if (entry.begin.value() <= row_begin) squares.push_back(0.0);
    }
    const std::int32_t group = about.n_heads / about.n_kv_heads;
    for (std::int32_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (std::int32_t row = row_begin; row < row_begin + about.block_size; row += about.stride) {
        std::vector<std::pair<std::size_t, double>> scores;
        for (std::size_t e = 0; e < squares.size(); ++e) {
          const std::int32_t begin = table[e].begin.value();
          for (std::int32_t key = begin; key < begin + table[e].n_tokens && key <= row; key += about.stride) {
            double sum = 0.0;
            for (std::int32_t i = 0; i < about.stride; ++i) {
              const std::int32_t query = row + about.stride - 1 - i;
              const float* const q = &session.q[to_size((query * about.n_heads + head) * about.head_dim)];
              const float* const k = layer.key(session, query, key + i, kv_head);
              for (std::int32_t d = 0; d < about.head_dim; ++d) sum += double{q[d]} * double{k[d]};
            }
            scores.emplace_back(e, sum * double{shape.scale} / about.stride);
          }
        }
        double total = 0.0;
        for (const auto& [entry, score] : scores) total += std::exp(score);
        for (const auto& [entry, score] : scores) squares[entry] += std::exp(score) / total;
      }
    }
    return squares;
  }

  // The fewest that have the threshold, the first and the last among them.
  static std::vector<bool> keep(const std::vector<double>& squares, double threshold) {
    const double wanted = threshold * std::accumulate(squares.begin(), squares.end(), 0.0);
    std::vector<bool> kept(squares.size(), false);
    kept.front() = kept.back() = true;
    double sum = squares.size() == 1 ? squares[0] : squares.front() + squares.back();
    while (sum < wanted) {
      std::size_t best = squares.size();
      for (std::size_t e = 0; e < squares.size(); ++e) {
        if (!kept[e] && (best == squares.size() || squares[e] > squares[best])) best = e;
      }
      if (best == squares.size()) break;
      kept[best] = true;
      sum += squares[best];
    }
    return kept;
  }
};

TEST_P(SquareChoices, are_those_of_the_definition_and_attention_is_that_of_what_they_look_at) {
  const Case& about = GetParam();
  const AttentionShape shape = make_shape(about);
  Layer layer(shape, 11);
  const Session session = layer.make_session(about.n_tokens, kBegin, about.drop_chance, true);
  SquareChoice choice;
  const Sight sight = make_sight(about);
  Session whole = session;
  for (auto& dropped : whole.dropped) {
    // Blocks of rows of squares hold their own keys, and what all look at is there.
    std::fill(dropped.begin() + sight.where.begin.value() / about.block_size, dropped.end(), false);
    dropped.front() = false;
  }
  const std::vector<Output> outputs =
      layer.run({whole}, {{about.n_tokens}}, {.n_threads = 2, .n_slices = 2, .sight = sight, .squares = &choice});
  const std::int32_t group = about.n_heads / about.n_kv_heads;
  std::size_t n_left_out = 0;
  std::size_t n_squares = 0;
  double error = 0.0;
  double mass_error = 0.0;
  for (std::int32_t h = 0; h < about.n_kv_heads; ++h) {
    const std::vector<TableEntry> table = Layer::kept_entries(whole, h, about.n_tokens);
    std::vector<std::vector<bool>> kept;
    for (std::int32_t row = sight.where.begin.value(); row < sight.where.end.value(); row += about.block_size) {
      kept.push_back(keep(weigh(about, shape, layer, whole, h, row, table), about.threshold));
      for (std::size_t e = 0; e < kept.back().size(); ++e) {
        EXPECT_EQ(choice.looks_at(0, HeadIndex(h), Position(row + 1), static_cast<std::int32_t>(e)), kept.back()[e])
            << "head " << h << ", rows at " << row << ", entry " << e;
        n_left_out += kept.back()[e] ? 0 : 1;
        ++n_squares;
      }
    }
    const toy::Looks looks = [&](std::int32_t token, std::size_t entry) {
      const std::int32_t block = (token - sight.where.begin.value()) / about.block_size;
      const bool is_sparse = token >= sight.where.begin.value() && block < std::ssize(kept);
      return !is_sparse || kept[to_size(block)][entry];
    };
    const std::size_t stride = outputs[0].mass.size() / to_size(about.n_tokens * about.n_kv_heads);
    for (std::int32_t token = 0; token < about.n_tokens; token += 3) {
      std::vector<double> mass(stride, 0.0);
      for (std::int32_t head = h * group; head < (h + 1) * group; ++head) {
        const std::vector<double> expected = layer.reference(whole, token, head, &mass, 1, looks);
        const float* const out = &outputs[0].out[to_size((token * about.n_heads + head) * about.head_dim)];
        for (std::size_t d = 0; d < expected.size(); ++d)
          error = std::max(error, std::abs(expected[d] - double{out[d]}));
      }
      const float* const given = &outputs[0].mass[to_size(token * about.n_kv_heads + h) * stride];
      for (std::size_t e = 0; e < stride; ++e) mass_error = std::max(mass_error, std::abs(mass[e] - double{given[e]}));
    }
  }
  EXPECT_LT(error, 2e-6);
  EXPECT_LT(mass_error, 2e-6 * group);
  EXPECT_GT(n_left_out, n_squares / 20) << "something is left out";
  EXPECT_LT(n_left_out, n_squares * 19 / 20);
}

// Threads, frames, company and the cut into steps of whole blocks.
TEST_P(SquareChoices, depend_on_nothing_but_what_a_block_of_rows_sees) {
  const Case& about = GetParam();
  Layer layer(make_shape(about), 12);
  std::vector<Session> sessions = {layer.make_session(about.n_tokens, kBegin, 0.0, true),
                                   layer.make_session(about.n_tokens, kBegin, 0.0, true)};
  const Sight sight = make_sight(about);
  SquareChoice choice;
  const auto run = [&](const std::vector<Session>& of, const std::vector<Cut>& cuts, std::int32_t n_threads) {
    return layer.run(of, cuts,
                     {.n_threads = n_threads,
                      .frame_seed = static_cast<std::uint32_t>(n_threads),
                      .sight = sight,
                      .squares = &choice});
  };
  const std::vector<Output> alone = run({sessions[0]}, {{about.n_tokens}}, 1);
  const std::vector<Output> both = run(sessions, {whole_blocks(about, 1), whole_blocks(about, 3)}, 3);
  EXPECT_EQ(std::memcmp(alone[0].out.data(), both[0].out.data(), alone[0].out.size() * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(alone[0].mass.data(), both[0].mass.data(), alone[0].mass.size() * sizeof(float)), 0);
  const std::vector<Output> other = run({sessions[1]}, {whole_blocks(about, 2)}, 2);
  EXPECT_EQ(std::memcmp(other[0].out.data(), both[1].out.data(), other[0].out.size() * sizeof(float)), 0);

  // A block of which one row comes in a later step is computed densely.
  Cut uneven = whole_blocks(about, 1);
  uneven[1] -= 1;
  uneven[2] += 1;
  SquareChoice of_uneven;
  const std::vector<Output> dense = layer.run({sessions[0]}, {{about.n_tokens}}, {});
  const std::vector<Output> cut = layer.run({sessions[0]}, {uneven}, {.sight = sight, .squares = &of_uneven});
  const std::size_t width = to_size(about.n_heads * about.head_dim) * to_size(about.block_size);
  EXPECT_EQ(std::memcmp(cut[0].out.data() + width, dense[0].out.data() + width, width * sizeof(float)), 0);
}

TEST_P(SquareChoices, are_the_same_with_every_instruction_set) {
  const Case& about = GetParam();
  Layer layer(make_shape(about), 13);
  const Session session = layer.make_session(about.n_tokens, kBegin, 0.0, true);
  std::vector<Output> outputs;
  for (const KernelSet set : {KernelSet::kPortable, KernelSet::kAvx2, KernelSet::kAvx512}) {
    if (!try_set_kernel_set(set)) continue;
    SquareChoice choice;
    outputs.push_back(
        layer.run({session}, {{about.n_tokens}}, {.sight = make_sight(about), .squares = &choice}).front());
    EXPECT_EQ(std::memcmp(outputs.back().out.data(), outputs[0].out.data(), outputs[0].out.size() * sizeof(float)), 0)
        << kernel_set_name(set);
  }
  ASSERT_TRUE(try_set_kernel_set(best_kernel_set()));
}

TEST(SquareChoice, of_what_is_no_number_is_some_choice) {
  const Case about = {RowType::kF32, 2, 1, 16, 16, 4, 128, 0.5, 0.0};
  AttentionShape shape;
  shape.layout = {.row_type = about.type, .block_size = 16, .head_dim_k = 16, .head_dim_v = 16};
  shape.n_heads = 2;
  shape.n_kv_heads = 1;
  Layer layer(shape, 5);
  Session session = layer.make_session(about.n_tokens, kBegin, 0.0, true);
  for (std::size_t i = 0; i < session.q.size(); i += 7) session.q[i] = std::nanf("");
  for (std::size_t i = 0; i < session.k.size(); i += 5) session.k[i] = INFINITY;
  SquareChoice choice;
  const Sight sight = {.where = {kBegin, Position(96)}, .squares = {.threshold = 0.5, .stride = 4}, .block_size = 16};
  (void)layer.run({session}, {{about.n_tokens}}, {.sight = sight, .squares = &choice});
  for (std::int32_t row = 0; row < 96; row += 16) {
    EXPECT_TRUE(choice.looks_at(0, HeadIndex(0), Position(row), 0));
    EXPECT_TRUE(choice.looks_at(0, HeadIndex(0), Position(row), row / 16));
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, SquareChoices, ::testing::ValuesIn(kCases), [](const auto& about) {
  return std::string(row_type_name(about.param.type)) + "_" + std::to_string(about.index);
});

}  // namespace
}  // namespace ebb::square_choice_test
